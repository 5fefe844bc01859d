// Codec of the values that ranks exchange through store keys: a result, or the reason of a failure.
// Pure. Private to snapshot.
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
// The error text names the rank that failed.
Result<std::string> decode_outcome(const Result<std::string>& received, int from_rank);

// What a rank has written: the crc32s of its parts of each shared file, and its own file.
struct Done {
  std::vector<std::vector<uint32_t>> parts;
  uint64_t own_bytes = 0;
  uint32_t own_crc32 = 0;
  uint32_t fingerprint = 0;  // of names and sizes of all storages; equal on all ranks
};
std::string encode(const Done& done);
Result<Done> decode_done(std::string_view text);

}  // namespace cpprun::snapshot
