#include "rendezvous/protocol/transfer/replica_protocol.hpp"

#include <array>
#include <limits>

#include "common/limits/snapshots.hpp"
#include "common/text.hpp"

namespace cpprun::replica_protocol {
namespace {

constexpr std::string_view kWord = "cpprun-shards-1";
constexpr std::string_view kOwn = "own";
constexpr std::string_view kReplicas = "replicas";
constexpr size_t kNumbers = 8;

Error broken() { return Error{ErrorKind::Protocol, "what came is no word about shards in memory"}; }

std::string words_of(const ShardId& shard) {
  std::string text;
  const auto add = [&text](auto number) {
    if (!text.empty()) text += ' ';
    text += std::to_string(number);
  };
  add(shard.index);
  add(shard.label.step);
  add(shard.label.round);
  add(shard.label.rank);
  add(shard.label.world_size);
  add(shard.number);
  add(shard.crc32);
  add(shard.bytes);
  return text;
}

std::optional<ShardId> shard_of(const std::vector<std::string>& words, size_t first) {
  if (words.size() != first + kNumbers) return std::nullopt;
  std::array<int64_t, kNumbers> numbers{};
  for (size_t i = 0; i < kNumbers; ++i) {
    const std::optional<int64_t> number = text::parse_int(words[first + i]);
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
  request.shard = shard_of(words, kFirst);
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
    const std::optional<ShardId> shard = shard_of(text::split(text.substr(0, end), ' '), 0);
    if (!shard || shards.size() >= 2 * size_t{limits::kShardsPerNode}) return broken();
    shards.push_back(*shard);
    text.remove_prefix(end + 1);
  }
  return shards;
}

}  // namespace cpprun::replica_protocol
