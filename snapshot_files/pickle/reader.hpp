// Reads the pickles that torch.save writes: the record data.pkl of a checkpoint.
//
// Only builds values: no code of the file is ever run, and every global outside the fixed list of
// globals.hpp is refused by name. Bytes may be hostile: sizes, nesting and the size of the tree
// that shared parts unfold to are limited. Pure. Python counterpart: torch._weights_only_unpickler.
#pragma once

#include <cstddef>
#include <string_view>

#include "common/result.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::pickle {

struct ReadLimits {
  size_t nodes = 4'000'000;       // values in the finished tree; a model has some thousand
  size_t text_bytes = 256 << 20;  // of all its texts; shared ones count each time
  size_t depth = 100;             // of nesting
  size_t memo = 16'000'000;       // greatest number that a value may be remembered under
};

// Error (Protocol) says what is wrong, and at which byte.
Result<Value> read(std::string_view bytes, const ReadLimits& limits = {});

}  // namespace cpprun::pickle
