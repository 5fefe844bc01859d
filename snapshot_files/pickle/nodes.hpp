// Nodes: the values while a pickle is being read. A pickle fills lists and dictionaries after other
// values refer to them, so nodes refer to each other by number; unfold() makes the tree of Values.
// Private.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/pickle/dtype.hpp"
#include "snapshot_files/pickle/pickle.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::pickle {

using NodeId = uint32_t;
using NodeIds = std::vector<NodeId>;

struct ListNode {
  NodeIds items;
};
struct TupleNode {
  NodeIds items;
};
struct DictNode {
  NodeIds keys_and_values;  // alternating
};
struct GlobalNode {
  std::string name;  // "torch._utils._rebuild_tensor_v2"
};
struct StorageNode {
  std::string key;
  std::string dtype;  // empty: untyped, the tensor has the dtype
  int64_t numel = 0;  // of an untyped one: bytes
  std::string location;
};
// An object of a class of torch.distributed.checkpoint.
struct ObjectNode {
  std::string name;             // of the class
  std::optional<NodeId> state;  // its attributes
};
// `Value` is used for values without children.
using Node =
    std::variant<Value, ListNode, TupleNode, DictNode, GlobalNode, StorageNode, ObjectNode>;

class Nodes {
 public:
  // `embedded`: takes the storages that the pickle holds; null if it may hold none. `is_dcp`: the
  // pickle may have objects of torch.distributed.checkpoint.
  explicit Nodes(const ReadLimits& limits,
                 std::map<std::string, EmbeddedStorage>* embedded = nullptr, bool is_dcp = false)
      : limits_(limits), embedded_(embedded), is_dcp_(is_dcp) {}

  const ReadLimits& limits() const { return limits_; }
  bool may_embed() const { return embedded_ != nullptr; }
  bool is_dcp() const { return is_dcp_; }
  // Keeps the bytes of a storage and returns its key.
  std::string embed(EmbeddedStorage storage) {
    std::string key = std::to_string(embedded_->size());
    embedded_->emplace(key, std::move(storage));
    return key;
  }

  // Accounts for a call that copies `amount`. False: the calls have copied more than any checkpoint
  // needs, so the pickle repeats a big argument to exhaust memory.
  bool may_copy(size_t amount) {
    copied_ += amount;
    return copied_ <= limits_.text_bytes;
  }
  NodeId add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  size_t size() const { return nodes_.size(); }
  template <class T>
  T* get_if(NodeId id) {
    return std::get_if<T>(&nodes_[id]);
  }
  // The items of a list or tuple, or null.
  const NodeIds* items(NodeId id) {
    if (const auto* list = get_if<ListNode>(id)) return &list->items;
    const auto* tuple = get_if<TupleNode>(id);
    return tuple == nullptr ? nullptr : &tuple->items;
  }
  // The value of a node without children, or null.
  template <class T>
  const T* simple(NodeId id) {
    const Value* value = get_if<Value>(id);
    return value == nullptr ? nullptr : value->get_if<T>();
  }

  // The tree below `id`. Error: too deep (as a list that contains itself is) or too large.
  Result<Value> unfold(NodeId id) const;

 private:
  class Unfolding;
  const ReadLimits& limits_;
  std::map<std::string, EmbeddedStorage>* const embedded_;
  const bool is_dcp_;
  std::deque<Node> nodes_;  // a vector would copy them to grow, with twice the memory
  size_t copied_ = 0;
};

struct OnePickle {
  NodeId top = 0;
  size_t bytes = 0;  // its length
};
// Reads the pickle at the begin of `bytes` (reader.cpp).
Result<OnePickle> read_one(std::string_view bytes, Nodes& nodes);
// The call of torch.storage._load_from_bytes (embedded.cpp).
Result<NodeId> load_from_bytes(Nodes& nodes, const std::string& global, const NodeIds& arguments);
// Calls `global` with the arguments of a tuple if the fixed list has it (calls.cpp).
Result<NodeId> call(Nodes& nodes, const std::string& global, const NodeIds& arguments);
// Whether a pickle may refer to the global `name`.
bool is_known_global(std::string_view name);
// The same two for what only a `.metadata` may name (dcp_globals.cpp); classes are not called.
Result<NodeId> call_dcp(Nodes& nodes, const std::string& global, const NodeIds& arguments);
bool is_dcp_global(std::string_view name);
// Whether the pickle may make objects of the global `name`.
bool is_dcp_class(std::string_view name);
// "float32" for "torch.FloatStorage"; empty for an untyped one; nothing if it is not a storage.
std::optional<std::string> dtype_of_storage(std::string_view name);
// "Size" for "torch.Size"; empty for a name of another module.
std::string in_torch(std::string_view global);

}  // namespace cpprun::pickle
