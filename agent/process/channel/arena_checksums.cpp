#include "agent/process/channel/arena_checksums.hpp"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "common/limits/channel.hpp"
#include "common/thread/detached_thread.hpp"
#include "snapshot_files/archive/crc32.hpp"

namespace cpprun {
namespace {

struct Range {
  uint64_t at = 0;
  uint64_t bytes = 0;
};

// Ranges of a memory of `bytes` bytes.
Result<std::vector<Range>> ranges_of(const std::string& text, uint64_t bytes) {
  std::vector<Range> ranges(text.size() / sizeof(Range));
  if (text.empty() || text.size() % sizeof(Range) != 0)
    return Error{ErrorKind::Protocol, "a range has another length"};
  std::memcpy(ranges.data(), text.data(), text.size());
  uint64_t all = 0;
  for (const Range& range : ranges) {
    if (range.at > bytes || range.bytes > bytes - range.at)
      return Error{ErrorKind::Protocol, "a range lies outside of the memory"};
    if (range.bytes > limits::kChecksumBytes - all)
      return Error{ErrorKind::Refused, "too many bytes at once"};
    all += range.bytes;
  }
  return ranges;
}

Result<uint32_t> crc32_of(int memory, Range range, std::span<std::byte> block) {
  uint32_t crc = 0;
  while (range.bytes > 0) {
    const size_t most = std::min<uint64_t>(range.bytes, block.size());
    const ssize_t got = ::pread(memory, block.data(), most, static_cast<off_t>(range.at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return Error{ErrorKind::System, std::string("the memory can't be read: ") + strerror(errno)};
    const auto size = static_cast<size_t>(got);
    crc = archive::crc32(block.first(size), crc);
    range.at += size;
    range.bytes -= size;
  }
  return crc;
}

Result<std::vector<uint32_t>> crc32s_of(int memory, const std::vector<Range>& ranges) {
  std::vector<std::byte> block(limits::kChecksumBlock);
  std::vector<uint32_t> crcs;
  for (const Range& range : ranges) {
    const Result<uint32_t> crc = crc32_of(memory, range, block);
    if (!crc) return crc.error();
    crcs.push_back(*crc);
  }
  return crcs;
}

}  // namespace

Status ArenaChecksums::compute(Arenas::View arena, const std::string& ranges, Done done) {
  Result<std::vector<Range>> wanted = ranges_of(ranges, arena.bytes);
  if (!wanted) return wanted.error();
  const auto memory = std::make_shared<UniqueFd>(std::move(arena.descriptor));
  return start_detached_thread(
      [way = poster_, memory, wanted = std::move(*wanted), done = std::move(done)] {
        const auto crcs = crc32s_of(memory->get(), wanted);
        LoopPoster::post(way, [done, crcs] { done(crcs); });
      });
}

}  // namespace cpprun
