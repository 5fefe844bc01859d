#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"

#include <array>
#include <limits>
#include <span>

#include "common/limits/snapshots.hpp"
#include "common/text.hpp"

namespace cpprun::snapshot_protocol {
namespace {

constexpr std::string_view kFetch = "cpprun-snapshot-1";
constexpr std::string_view kBytes = "bytes ";
constexpr std::string_view kNo = "no ";

Error broken() {
  return Error{ErrorKind::Protocol, "the peer sent no valid message of the snapshot protocol"};
}

// Keeps the text on one line.
std::string flat(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::string ended(std::string line) {
  line.resize(std::min(line.size(), kLineBytes - 1));
  return line + "\n";
}

}  // namespace

std::string encode(const Request& request) {
  return ended(std::string(kFetch) + " " + request.secret + " " +
               std::to_string(request.snapshot.step) + " " + request.snapshot.id + " " +
               request.file);
}

std::string encode(const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::Bytes: return ended(std::string(kBytes) + std::to_string(answer.bytes));
    case Answer::Kind::Busy: return "busy\n";
    case Answer::Kind::Secret: return "secret\n";
    case Answer::Kind::No: break;
  }
  return ended(std::string(kNo) + flat(answer.why));
}

Result<Request> decode_request(std::string_view line) {
  constexpr size_t kWords = 4;  // before the file name, which may hold blanks
  std::vector<std::string> words;
  while (words.size() < kWords) {
    const size_t end = line.find(' ');
    if (end == std::string_view::npos || end == 0) return broken();
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  const std::optional<int64_t> step = text::parse_int(words[2]);
  if (words[0] != kFetch || !step || *step < 0 || line.empty()) return broken();
  return Request{words[1], {*step, words[3]}, std::string(line)};
}

Result<Answer> decode_answer(std::string_view line) {
  if (line == "busy") return Answer{Answer::Kind::Busy, 0, "too many others fetch from there"};
  if (line == "secret") {
    return Answer{Answer::Kind::Secret, 0, "its agent does not know this round"};
  }
  if (line.starts_with(kNo)) {
    return Answer{Answer::Kind::No, 0, flat(std::string(line.substr(kNo.size())))};
  }
  if (!line.starts_with(kBytes)) return broken();
  const std::optional<int64_t> bytes = text::parse_int(line.substr(kBytes.size()));
  if (!bytes || *bytes < 0) return broken();
  return Answer{Answer::Kind::Bytes, static_cast<uint64_t>(*bytes)};
}

}  // namespace cpprun::snapshot_protocol

namespace cpprun::replica_protocol {
namespace {

constexpr std::string_view kWord = "cpprun-shards-1";
constexpr std::string_view kOwn = "own";
constexpr std::string_view kReplicas = "replicas";
constexpr size_t kNumbers = 8;

Error broken() {
  return Error{ErrorKind::Protocol, "the peer sent no valid message about shards in memory"};
}

std::string words_of(const ShardId& shard) {
  const snapshot_files::SlotLabel& label = shard.label;
  std::string text = std::to_string(shard.index);
  for (const int64_t number : {label.step, label.round, int64_t{label.rank},
                               int64_t{label.world_size}, static_cast<int64_t>(shard.number),
                               int64_t{shard.crc32}, static_cast<int64_t>(shard.bytes)}) {
    text += ' ' + std::to_string(number);
  }
  return text;
}

std::optional<ShardId> shard_of(std::span<const std::string> words) {
  if (words.size() != kNumbers) return std::nullopt;
  std::array<int64_t, kNumbers> numbers{};
  for (size_t i = 0; i < kNumbers; ++i) {
    const std::optional<int64_t> number = text::parse_int(words[i]);
    if (!number || *number < 0) return std::nullopt;
    numbers[i] = *number;
  }
  constexpr int64_t kInt = std::numeric_limits<int>::max();
  const auto [index, step, round, rank, world_size, order, crc32, bytes] = numbers;
  const bool is_sane = index < limits::kShardsPerNode && rank < world_size && world_size <= kInt &&
                       crc32 <= std::numeric_limits<uint32_t>::max() &&
                       static_cast<uint64_t>(bytes) <= limits::kSnapshotFileBytes;
  if (!is_sane) return std::nullopt;
  ShardId shard;
  shard.index = static_cast<int>(index);
  shard.label = {step, round, static_cast<int>(rank), static_cast<int>(world_size)};
  shard.number = static_cast<uint64_t>(order);
  shard.crc32 = static_cast<uint32_t>(crc32);
  shard.bytes = static_cast<uint64_t>(bytes);
  return shard;
}

}  // namespace

std::string encode(const Request& request) {
  const std::string_view shard_namespace =
      request.shard_namespace == ShardNamespace::Own ? kOwn : kReplicas;
  const std::string shard = request.shard ? " " + words_of(*request.shard) : "";
  return std::string(kWord) + " " + request.secret + " " + std::string(shard_namespace) + shard +
         "\n";
}

Result<Request> decode_request(std::string_view line) {
  constexpr size_t kFirst = 3;  // fields before those of a shard
  const std::vector<std::string> words = text::split(line, ' ');
  if (words.size() < kFirst || words[0] != kWord || words[1].empty()) return broken();
  if (words[2] != kOwn && words[2] != kReplicas) return broken();
  Request request{words[1], words[2] == kOwn ? ShardNamespace::Own : ShardNamespace::Replicas, {}};
  if (words.size() == kFirst) return request;
  request.shard = shard_of(std::span(words).subspan(kFirst));
  if (!request.shard) return broken();
  return request;
}

std::string encode(const std::vector<ShardId>& shards) {
  std::string text;
  for (const ShardId& shard : shards) text += words_of(shard) + "\n";
  return text;
}

Result<std::vector<ShardId>> decode_shards(std::string_view text) {
  std::vector<ShardId> shards;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return broken();
    const std::optional<ShardId> shard = shard_of(text::split(text.substr(0, end), ' '));
    if (!shard || shards.size() >= 2 * size_t{limits::kShardsPerNode}) return broken();
    shards.push_back(*shard);
    text.remove_prefix(end + 1);
  }
  return shards;
}

}  // namespace cpprun::replica_protocol
