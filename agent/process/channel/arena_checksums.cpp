#include "agent/process/channel/arena_checksums.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "common/limits/channel.hpp"
#include "snapshot_files/archive/crc32.hpp"

namespace cpprun {
namespace {

Result<uint32_t> crc32_of(int memory, ArenaRange range, std::span<std::byte> block) {
  uint32_t crc = 0;
  while (range.bytes > 0) {
    const size_t most = std::min<uint64_t>(range.bytes, block.size());
    const ssize_t got = ::pread(memory, block.data(), most, static_cast<off_t>(range.at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return system_error("the memory can't be read", errno);
    const auto size = static_cast<size_t>(got);
    crc = archive::crc32(block.first(size), crc);
    range.at += size;
    range.bytes -= size;
  }
  return crc;
}

}  // namespace

Result<std::vector<ArenaRange>> checksum_ranges(const std::string& text, uint64_t bytes) {
  std::vector<ArenaRange> ranges(text.size() / sizeof(ArenaRange));
  if (text.empty() || text.size() % sizeof(ArenaRange) != 0)
    return Error{ErrorKind::Protocol, "a range has another length"};
  std::memcpy(ranges.data(), text.data(), text.size());
  uint64_t all = 0;
  for (const ArenaRange& range : ranges) {
    if (range.at > bytes || range.bytes > bytes - range.at)
      return Error{ErrorKind::Protocol, "a range lies outside of the memory"};
    if (range.bytes > limits::kChecksumBytes - all)
      return Error{ErrorKind::Refused, "too many bytes at once"};
    all += range.bytes;
  }
  return ranges;
}

Result<std::vector<uint32_t>> crc32s_of(int memory, const std::vector<ArenaRange>& ranges) {
  std::vector<std::byte> block(limits::kChecksumBlock);
  std::vector<uint32_t> crcs;
  for (const ArenaRange& range : ranges) {
    const Result<uint32_t> crc = crc32_of(memory, range, block);
    if (!crc) return crc.error();
    crcs.push_back(*crc);
  }
  return crcs;
}

}  // namespace cpprun
