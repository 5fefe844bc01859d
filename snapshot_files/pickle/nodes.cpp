#include "snapshot_files/pickle/nodes.hpp"

#include <algorithm>
#include <iterator>

namespace cpprun::pickle {

class Nodes::Unfolding {
 public:
  Unfolding(const Nodes& nodes, const ReadLimits& limits) : nodes_(nodes), limits_(limits) {}

  Result<Value> value(NodeId id, size_t depth) {
    if (depth > limits_.depth) return wrong("is nested deeper than ", limits_.depth);
    if (++made_ > limits_.nodes) return wrong("unfolds to more values than ", limits_.nodes);
    const Node& node = nodes_.nodes_[id];
    if (const auto* simple = std::get_if<Value>(&node)) return copied(*simple);
    if (const auto* list = std::get_if<ListNode>(&node)) return many<List>(list->items, depth);
    if (const auto* tuple = std::get_if<TupleNode>(&node)) return many<Tuple>(tuple->items, depth);
    if (const auto* dict = std::get_if<DictNode>(&node)) return pairs(*dict, depth);
    if (const auto* global = std::get_if<GlobalNode>(&node)) return named(global->name);
    if (const auto* object = std::get_if<ObjectNode>(&node)) return object_of(*object, depth);
    return Error{ErrorKind::Protocol, "a storage stands where a value is wanted"};
  }

 private:
  static Error wrong(const char* what, size_t limit) {
    return Error{ErrorKind::Protocol, std::string("pickle ") + what + std::to_string(limit)};
  }

  Result<Value> copied(const Value& simple) {
    if (const auto* text = simple.get_if<std::string>()) text_bytes_ += text->size();
    if (const auto* bytes = simple.get_if<Bytes>()) text_bytes_ += bytes->bytes.size();
    if (const auto* number = simple.get_if<BigInt>()) text_bytes_ += number->bytes.size();
    if (const auto* tensor = simple.get_if<TensorRef>()) {
      text_bytes_ += tensor->storage.size() + 16 * tensor->sizes.size();
    }
    if (text_bytes_ <= limits_.text_bytes) return simple;
    return wrong("unfolds to more bytes of text than ", limits_.text_bytes);
  }

  template <class T>
  Result<Value> many(const NodeIds& ids, size_t depth) {
    T made;
    made.items.reserve(ids.size());
    for (const NodeId id : ids) {
      Result<Value> item = value(id, depth + 1);
      if (!item) return item.error();
      made.items.push_back(std::move(*item));
    }
    return Value(std::move(made));
  }

  Result<Value> pairs(const DictNode& dict, size_t depth) {
    Dict made;
    for (size_t i = 0; i + 1 < dict.keys_and_values.size(); i += 2) {
      Result<Value> key = value(dict.keys_and_values[i], depth + 1);
      if (!key) return key.error();
      Result<Value> held = value(dict.keys_and_values[i + 1], depth + 1);
      if (!held) return held.error();
      made.pairs.emplace_back(std::move(*key), std::move(*held));
    }
    return Value(std::move(made));
  }

  Result<Value> object_of(const ObjectNode& object, size_t depth) {
    Dict made;
    const size_t last = object.name.rfind('.');
    made.pairs.emplace_back("__class__", object.name.substr(last + 1));
    if (!object.state) return Value(std::move(made));
    Result<Value> state = value(*object.state, depth + 1);
    if (!state) return state.error();
    if (auto* attributes = state->get_if<Dict>()) {
      std::ranges::move(attributes->pairs, std::back_inserter(made.pairs));
    } else {
      made.pairs.emplace_back("__state__", std::move(*state));
    }
    return Value(std::move(made));
  }

  // Of the globals only dtypes are values.
  static Result<Value> named(const std::string& name) {
    const std::string dtype = in_torch(name);
    if (find_dtype(dtype) != nullptr) return Value(Dtype{dtype});
    return Error{ErrorKind::Protocol, name + " stands where a value is wanted"};
  }

  const Nodes& nodes_;
  const ReadLimits& limits_;
  size_t made_ = 0;
  size_t text_bytes_ = 0;
};

Result<Value> Nodes::unfold(NodeId id) const { return Unfolding(*this, limits_).value(id, 1); }

}  // namespace cpprun::pickle
