// The crc32s of ranges of an arena, for workers whose language is slow at it. The agent maps an
// arena of huge pages in windows, and reads an arena of small pages in blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

struct ArenaRange {
  uint64_t at = 0;
  uint64_t bytes = 0;
};

// `text`: as in channel::ChecksumRequest; `bytes`: of the arena. Error: the request makes no sense.
Result<std::vector<ArenaRange>> checksum_ranges(const std::string& text, uint64_t bytes);

// The crc32 of each range of this memory. Takes long: not for the loop.
Result<std::vector<uint32_t>> crc32s_of(int memory, const std::vector<ArenaRange>& ranges);

}  // namespace cpprun
