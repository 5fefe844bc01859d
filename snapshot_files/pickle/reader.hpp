// Reads the pickles that torch.save writes: the record data.pkl of a checkpoint.
//
// Only builds values: it runs no code of the file and refuses every global outside a fixed list
// (calls.cpp) by name. The bytes may be hostile: sizes, nesting and the size of the tree to which
// shared parts unfold are limited. Pure. Python counterpart: torch._weights_only_unpickler.
#pragma once

#include <cstddef>
#include <string_view>

#include "common/result.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::pickle {

struct ReadLimits {
  size_t nodes = 4'000'000;       // values in the finished tree; a model has some thousands
  size_t text_bytes = 256 << 20;  // of all texts; a shared one counts each time
  size_t depth = 100;             // of nesting
  size_t memo = 16'000'000;       // highest memo index
};

// The error (Protocol) gives the problem and its byte offset.
Result<Value> read(std::string_view bytes, const ReadLimits& limits = {});

}  // namespace cpprun::pickle
