#include "agent/process/channel/arena_checksums.hpp"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "common/limits/channel.hpp"
#include "common/machine/mapping.hpp"
#include "snapshot_files/archive/crc32.hpp"

namespace cpprun {
namespace {

// A window of an arena, to read, whose pages are all huge. Null: the kernel cannot make them so,
// for example before Linux 6.1. Reading small pages in blocks is faster than mapping them, which
// takes a page fault for each few. `at`: a multiple of a huge page.
Mapping map_huge_pages(int memory, uint64_t at, size_t bytes) {
  Mapping window = map_aligned(bytes, PROT_READ, MAP_SHARED, memory, static_cast<off_t>(at));
  if (window && ::madvise(window.get(), bytes, kCollapse) != 0) window.reset();
  return window;
}

using Bytes = std::span<const std::byte>;

class ArenaReader {
 public:
  explicit ArenaReader(int memory) : memory_(memory), block_(limits::kChecksumBlock) {}

  // The first bytes of the range, as many as are read at a time. Valid until the next call.
  Result<Bytes> read(ArenaRange range) {
    if (has_huge_pages_ && range.bytes >= kHugePage) {
      const uint64_t begin = range.at / kHugePage * kHugePage;
      const uint64_t end = (range.at + range.bytes + kHugePage - 1) / kHugePage * kHugePage;
      const size_t size = std::min(end - begin, limits::kChecksumWindow);
      window_.reset();
      window_ = map_huge_pages(memory_, begin, size);
      const uint64_t before = range.at - begin;
      if (window_) return Bytes(window_.get() + before, std::min(range.bytes, size - before));
      has_huge_pages_ = false;  // a failed attempt costs more than it can save
    }
    return read_block(range);
  }

 private:
  Result<Bytes> read_block(ArenaRange range) {
    const size_t most = std::min<uint64_t>(range.bytes, block_.size());
    while (true) {
      const ssize_t got = ::pread(memory_, block_.data(), most, static_cast<off_t>(range.at));
      if (got > 0) return Bytes(block_).first(static_cast<size_t>(got));
      if (got == 0 || errno != EINTR) return system_error("the memory can't be read", errno);
    }
  }

  int memory_;
  bool has_huge_pages_ = true;  // as far as is known
  Mapping window_;
  std::vector<std::byte> block_;
};

Result<uint32_t> crc32_of(ArenaReader& reader, ArenaRange range) {
  uint32_t crc = 0;
  while (range.bytes > 0) {
    const Result<Bytes> bytes = reader.read(range);
    if (!bytes) return bytes.error();
    crc = archive::crc32(*bytes, crc);
    range.at += bytes->size();
    range.bytes -= bytes->size();
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
  ArenaReader reader(memory);
  std::vector<uint32_t> crcs;
  for (const ArenaRange& range : ranges) {
    const Result<uint32_t> crc = crc32_of(reader, range);
    if (!crc) return crc.error();
    crcs.push_back(*crc);
  }
  return crcs;
}

}  // namespace cpprun
