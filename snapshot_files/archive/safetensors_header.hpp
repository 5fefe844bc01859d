// The headers of .safetensors files, and the index of a model in several files. Pure.
//
// A file is eight bytes (the length of the header, little-endian), a JSON header with the dtype,
// shape and position of each tensor, and the elements of all tensors in row-major order, without
// gaps. Files are not trusted: every length and offset is checked before it is used.
// https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/archive/bytes.hpp"

namespace cpprun::archive {

inline constexpr size_t kSafetensorsLengthBytes = 8;

struct SafetensorsEntry {
  std::string name = {};
  std::string dtype = {};  // as torch spells it; empty: a dtype that this program does not know
  std::string dtype_in_file = {};   // "BF16"
  std::vector<int64_t> shape = {};  // not negative; the number of elements fits into int64_t
  uint64_t offset = 0;              // from the start of the file
  uint64_t bytes = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  // in the order of their offsets
  std::map<std::string, std::string> metadata;
};

// The number of bytes of the JSON header, from the first eight bytes of a file of `file_bytes`.
Result<uint64_t> safetensors_header_bytes(ConstBytes first, uint64_t file_bytes);
// `json`: the bytes behind the first eight. Error: what is wrong, with the name of the tensor.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t file_bytes);

// The file of each tensor, from a model.safetensors.index.json; files are plain names.
Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view json);

// The length and the JSON header of a file with these tensors in this order. Sets their offsets.
// Uses name, dtype, shape and bytes. Error: a dtype that the format lacks, a name that stands twice
// or is reserved.
Result<std::string> encode_safetensors_header(std::vector<SafetensorsEntry>& tensors,
                                              const std::map<std::string, std::string>& metadata);

}  // namespace cpprun::archive
