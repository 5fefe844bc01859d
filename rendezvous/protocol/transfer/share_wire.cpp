#include "rendezvous/protocol/transfer/share_wire.hpp"

#include <array>
#include <limits>

#include "common/limits/fetch.hpp"
#include "common/text.hpp"

namespace cpprun::share_wire {
namespace {

constexpr std::string_view kWord = "cpprun-shares-1";
constexpr std::string_view kOwn = "own";
constexpr std::string_view kCopies = "copies";
constexpr size_t kNumbers = 8;

Error broken() {
  return Error{ErrorKind::Protocol, "what came is no word about shares in memory"};
}

std::string words_of(const ShareName& share) {
  std::string text;
  const auto add = [&text](auto number) {
    if (!text.empty()) text += ' ';
    text += std::to_string(number);
  };
  add(share.index);
  add(share.label.step);
  add(share.label.round);
  add(share.label.rank);
  add(share.label.world_size);
  add(share.number);
  add(share.crc32);
  add(share.bytes);
  return text;
}

std::vector<std::string_view> split(std::string_view line, size_t most) {
  std::vector<std::string_view> words;
  while (words.size() <= most) {
    const size_t end = line.find(' ');
    words.push_back(line.substr(0, end));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return words;
}

std::optional<ShareName> share_of(const std::vector<std::string_view>& words, size_t first) {
  if (words.size() != first + kNumbers) return std::nullopt;
  std::array<int64_t, kNumbers> numbers{};
  for (size_t i = 0; i < kNumbers; ++i) {
    const std::optional<int64_t> number = text::parse_int(std::string(words[first + i]));
    if (!number || *number < 0) return std::nullopt;
    numbers[i] = *number;
  }
  constexpr int64_t kInt = std::numeric_limits<int>::max();
  const auto [index, step, round, rank, world_size, order, crc32, bytes] = numbers;
  const bool is_sane = index < limits::kSharesPerNode && rank < world_size && world_size <= kInt &&
                       crc32 <= std::numeric_limits<uint32_t>::max() &&
                       static_cast<uint64_t>(bytes) <= limits::kSnapshotFileBytes;
  if (!is_sane) return std::nullopt;
  ShareName share;
  share.index = static_cast<int>(index);
  share.label = {step, round, static_cast<int>(rank), static_cast<int>(world_size)};
  share.number = static_cast<uint64_t>(order);
  share.crc32 = static_cast<uint32_t>(crc32);
  share.bytes = static_cast<uint64_t>(bytes);
  return share;
}

}  // namespace

std::string encode(const Request& request) {
  const std::string_view shelf = request.shelf == Shelf::Own ? kOwn : kCopies;
  const std::string share = request.share ? " " + words_of(*request.share) : "";
  return std::string(kWord) + " " + request.secret + " " + std::string(shelf) + share + "\n";
}

Result<Request> decode_request(std::string_view line) {
  constexpr size_t kFirst = 3;  // words before those of a share
  const std::vector<std::string_view> words = split(line, kFirst + kNumbers);
  if (words.size() < kFirst || words[0] != kWord || words[1].empty()) return broken();
  if (words[2] != kOwn && words[2] != kCopies) return broken();
  Request request{std::string(words[1]), words[2] == kOwn ? Shelf::Own : Shelf::Copies, {}};
  if (words.size() == kFirst) return request;
  request.share = share_of(words, kFirst);
  if (!request.share) return broken();
  return request;
}

std::string encode(const std::vector<ShareName>& shares) {
  std::string text;
  for (const ShareName& share : shares) text += words_of(share) + "\n";
  return text;
}

Result<std::vector<ShareName>> decode_shares(std::string_view text) {
  std::vector<ShareName> shares;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return broken();
    const std::optional<ShareName> share = share_of(split(text.substr(0, end), kNumbers), 0);
    if (!share || shares.size() >= 2 * size_t{limits::kSharesPerNode}) return broken();
    shares.push_back(*share);
    text.remove_prefix(end + 1);
  }
  return shares;
}

}  // namespace cpprun::share_wire
