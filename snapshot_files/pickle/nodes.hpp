// Nodes: values while a pickle is being read. Lists and dictionaries are filled after others refer
// to them, so values name each other by number; only the finished tree is made of Value. Private.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/pickle/dtype.hpp"
#include "snapshot_files/pickle/reader.hpp"
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
  NodeIds keys_and_values;  // in turn
};
struct GlobalNode {
  std::string name;  // "torch._utils._rebuild_tensor_v2"
};
struct StorageNode {
  std::string key;
  std::string dtype;  // empty: untyped, the tensor says
  int64_t numel = 0;  // untyped: bytes
};
// `Value` holds what has no children.
using Node = std::variant<Value, ListNode, TupleNode, DictNode, GlobalNode, StorageNode>;

class Nodes {
 public:
  explicit Nodes(const ReadLimits& limits) : limits_(limits) {}

  // A call is about to copy so much. False: calls have copied more than any checkpoint needs, which
  // repeats one big argument many times.
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
  // The simple value of a node, or null.
  template <class T>
  const T* simple(NodeId id) {
    const Value* value = get_if<Value>(id);
    return value == nullptr ? nullptr : value->get_if<T>();
  }

  // The tree below `id`. Error: too deep (so a list in itself as well) or too much.
  Result<Value> unfold(NodeId id) const;

 private:
  class Unfolding;
  const ReadLimits& limits_;
  std::vector<Node> nodes_;
  size_t copied_ = 0;
};

// Calls `global` with the arguments of a tuple, where the fixed list has it (calls.cpp).
Result<NodeId> call(Nodes& nodes, const std::string& global, const NodeIds& arguments);
// May `name` be named at all?
bool is_known_global(std::string_view name);
// "float32" for "torch.FloatStorage"; empty for an untyped one; nothing for what is no storage.
std::optional<std::string> dtype_of_storage(std::string_view name);
// "FloatStorage" for "float32"; nothing for the newer dtypes, which are kept in untyped storages.
std::optional<std::string> storage_of_dtype(std::string_view dtype);

}  // namespace cpprun::pickle
