// What ranks tell each other by keys: success with something, or a reason. Pure. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun::snapshot {

// "+value" or "-reason".
std::string encode(const Result<std::string>& outcome);
std::string encode(const Status& outcome);
// The error says which rank it is from.
Result<std::string> decode_outcome(const Result<std::string>& heard, int from_rank);

// What a rank has written: crc32s of its parts, by file, and its own file.
struct Done {
  std::vector<std::vector<uint32_t>> parts;
  uint64_t own_bytes = 0;
  uint32_t own_crc32 = 0;
  uint32_t fingerprint = 0;  // of the names and sizes of all storages: ranks must agree
};
std::string encode(const Done& done);
Result<Done> decode_done(std::string_view text);

}  // namespace cpprun::snapshot
