// Reads and writes pickles of torch.save (the record data.pkl of a checkpoint) and of objects that
// hold their tensors. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "common/limits/snapshots.hpp"
#include "common/result.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::pickle {

struct ReadLimits {
  size_t nodes = 4'000'000;             // values in the finished tree; a model has some thousands
  size_t made = limits::kPickleValues;  // values while it is read, such as arguments of calls
  size_t text_bytes = 256 << 20;        // of all texts; a shared one counts each time
  size_t depth = 100;                   // of nesting
  size_t memo = 16'000'000;             // highest memo index
};

// Only builds values: it runs no code of the file and refuses every global outside a fixed list
// (calls.cpp) by name. The bytes may be hostile: sizes, nesting and the size of the tree to which
// shared parts unfold are limited. The error (Protocol) gives the problem and its byte offset.
// Python counterpart: torch._weights_only_unpickler.
Result<Value> read(std::string_view bytes, const ReadLimits& limits = {});

// As a pickle that Python's safe torch.load accepts: protocol 2, only with globals that torch.save
// itself uses. The caller writes the bytes of tensors, under the names in their TensorRefs.
// Requires: the reader knows the dtypes of all tensors.
std::string write(const Value& value);

// As `read`, for the `.metadata` of torch.distributed.checkpoint, with that format's own list of
// further globals (dcp_globals.cpp). An object becomes a dict: "__class__" has the last part of the
// class's name and stands first, its attributes follow; a state that is no dict is "__state__".
Result<Value> read_dcp_metadata(std::string_view bytes, const ReadLimits& limits = {});

// A storage whose bytes are within the pickle.
struct EmbeddedStorage {
  std::string bytes;
  std::string location = "cpu";  // torch's name of its device, such as "cuda:0"
};
// A pickle of Python's plain pickle module, as torch.distributed sends objects.
struct Object {
  Value value;
  std::map<std::string, EmbeddedStorage> storages;  // by TensorRef::storage
};

// As `read`, for Python's pickle.dumps(object): each tensor has its bytes in the pickle, in the
// legacy format of torch.save. `bytes` must end with the pickle.
Result<Object> read_object(std::string_view bytes, const ReadLimits& limits = {});

// For Python's pickle.loads: protocol 4. Requires: the reader knows the dtypes of all tensors, and
// `storages` has the bytes of each.
std::string write_object(const Object& object);

}  // namespace cpprun::pickle
