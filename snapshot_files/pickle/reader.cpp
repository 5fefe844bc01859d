#include <unordered_map>

#include "snapshot_files/pickle/byte_reader.hpp"
#include "snapshot_files/pickle/nodes.hpp"

namespace cpprun::pickle {
namespace {

Error wrong(const std::string& why, size_t at) {
  return Error{ErrorKind::Protocol, "pickle, at byte " + std::to_string(at) + ": " + why};
}

Result<Value> unfolded(std::string_view bytes, Nodes& nodes, bool must_end) {
  const Result<OnePickle> one = read_one(bytes, nodes);
  if (!one) return one.error();
  if (must_end && one->bytes != bytes.size()) return wrong("does not end there", one->bytes);
  Result<Value> made = nodes.unfold(one->top);
  return made ? std::move(made) : wrong(made.error().text, one->bytes);
}

class Machine {
 public:
  Machine(std::string_view bytes, Nodes& nodes)
      : in_(bytes), limits_(nodes.limits()), nodes_(nodes) {}

  Result<OnePickle> run() {
    while (!is_done_ && !in_.has_failed()) {
      // Every code makes at most a few nodes.
      if (nodes_.size() > limits_.made) {
        fail("has more values than " + std::to_string(limits_.made));
      }
      step(in_.take<uint8_t>());
    }
    const bool is_one = stack_.size() == 1 && stack_.back() != kMarkNode;
    if (!in_.has_failed() && !is_one) fail("ends with other than one value");
    if (in_.has_failed()) return wrong(in_.why(), in_.at());
    return OnePickle{stack_.back(), in_.at()};
  }

 private:
  static constexpr NodeId kMarkNode = UINT32_MAX;

  void fail(const std::string& why) { in_.fail(why); }

  void push(Node node) { stack_.push_back(nodes_.add(std::move(node))); }
  void push_value(Value value) { push(Node(std::move(value))); }
  NodeId pop() {
    if (stack_.empty() || stack_.back() == kMarkNode) {
      fail("takes a value where there is none");
      return nodes_.add(Value());
    }
    const NodeId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  NodeId top() {
    const NodeId id = pop();
    stack_.push_back(id);
    return id;
  }
  NodeIds pop_to_mark() {
    size_t first = stack_.size();
    while (first > 0 && stack_[first - 1] != kMarkNode) --first;
    if (first == 0) {
      fail("has no mark");
      return {};
    }
    NodeIds items(stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
    stack_.resize(first - 1);
    return items;
  }
  void push_tuple(size_t size) {
    NodeIds items(size);
    while (size-- > 0) items[size] = pop();
    push(TupleNode{std::move(items)});
  }

  void step(uint8_t code) {
    if (in_.has_failed() || step_simple(code) || step_container(code) || step_memo(code)) return;
    switch (code) {
      case kProto:
        if (in_.take<uint8_t>() > 5) fail("is of a protocol newer than 5");
        return;
      case kFrame: in_.take<uint64_t>(); return;
      case kStop: is_done_ = true; return;
      case kGlobal: {
        std::string module = in_.take_line();
        return push_global(module + "." + in_.take_line());
      }
      case kStackGlobal: return stack_global();
      case kReduce: return reduce();
      case kNewObj: return new_object();
      case kBuild: return build();
      case kBinPersId: return storage();
      default: fail("has code " + std::to_string(code) + ", which is not supported");
    }
  }

  bool step_simple(uint8_t code) {
    switch (code) {
      case kNone: push_value(None{}); return true;
      case kNewTrue: push_value(true); return true;
      case kNewFalse: push_value(false); return true;
      case kBinInt: push_value(int64_t{in_.take<int32_t>()}); return true;
      case kBinInt1: push_value(int64_t{in_.take<uint8_t>()}); return true;
      case kBinInt2: push_value(int64_t{in_.take<uint16_t>()}); return true;
      case kLong1: push_value(in_.take_long(in_.take<uint8_t>())); return true;
      case kLong4: push_value(in_.take_long(in_.take<uint32_t>())); return true;
      case kBinFloat: push_value(in_.take_double()); return true;
      case kBinUnicode: push_value(std::string(in_.take_bytes(in_.take<uint32_t>()))); return true;
      case kShortBinUnicode:
      case kShortBinString:
        push_value(std::string(in_.take_bytes(in_.take<uint8_t>())));
        return true;
      case kBinBytes:
        push_value(Bytes{std::string(in_.take_bytes(in_.take<uint32_t>()))});
        return true;
      case kShortBinBytes:
        push_value(Bytes{std::string(in_.take_bytes(in_.take<uint8_t>()))});
        return true;
      case kBinUnicode8: push_value(std::string(in_.take_bytes(in_.take<uint64_t>()))); return true;
      case kBinBytes8:
      case kByteArray8:
        push_value(Bytes{std::string(in_.take_bytes(in_.take<uint64_t>()))});
        return true;
      case kEmptySet:
      case kFrozenSet: fail("has a set, which C++ has no value for"); return true;
      default: return false;
    }
  }

  bool step_container(uint8_t code) {
    switch (code) {
      case kMark: stack_.push_back(kMarkNode); return true;
      case kEmptyTuple: push_tuple(0); return true;
      case kTuple1: push_tuple(1); return true;
      case kTuple2: push_tuple(2); return true;
      case kTuple3: push_tuple(3); return true;
      case kTuple: push(TupleNode{pop_to_mark()}); return true;
      case kEmptyList: push(ListNode{}); return true;
      case kEmptyDict: push(DictNode{}); return true;
      case kAppend: append({pop()}); return true;
      case kAppends: append(pop_to_mark()); return true;
      case kSetItem: {
        const NodeId value = pop();
        const NodeId key = pop();
        set_items({key, value});
        return true;
      }
      case kSetItems: set_items(pop_to_mark()); return true;
      default: return false;
    }
  }

  bool step_memo(uint8_t code) {
    switch (code) {
      case kBinPut: remember(in_.take<uint8_t>()); return true;
      case kLongBinPut: remember(in_.take<uint32_t>()); return true;
      case kMemoize: remember(memo_.size()); return true;
      case kBinGet: recall(in_.take<uint8_t>()); return true;
      case kLongBinGet: recall(in_.take<uint32_t>()); return true;
      default: return false;
    }
  }

  void append(const NodeIds& items) {
    auto* list = nodes_.get_if<ListNode>(top());
    if (list == nullptr) return fail("appends to what is no list");
    list->items.insert(list->items.end(), items.begin(), items.end());
  }
  void set_items(const NodeIds& items) {
    auto* dict = nodes_.get_if<DictNode>(top());
    if (dict == nullptr) return fail("sets items of what is no dict");
    if (items.size() % 2 != 0) return fail("has a key without a value");
    dict->keys_and_values.insert(dict->keys_and_values.end(), items.begin(), items.end());
  }
  void remember(size_t number) {
    if (number > limits_.memo) return fail("remembers more than " + std::to_string(limits_.memo));
    memo_[number] = top();
  }
  void recall(size_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) return fail("recalls what it never remembered");
    stack_.push_back(found->second);
  }

  void push_global(const std::string& name) {
    if (!is_known_global(name) && !(nodes_.is_dcp() && is_dcp_global(name))) {
      return fail("names " + name + ", which is none of those that a checkpoint may name");
    }
    push(GlobalNode{name});
  }
  void stack_global() {
    const NodeId name = pop();
    const NodeId module = pop();
    const auto* module_text = nodes_.simple<std::string>(module);
    const auto* name_text = nodes_.simple<std::string>(name);
    if (module_text == nullptr || name_text == nullptr) return fail("names a global by no text");
    push_global(*module_text + "." + *name_text);
  }
  void reduce() {
    const NodeId arguments = pop();
    const NodeId function = pop();
    const auto* global = nodes_.get_if<GlobalNode>(function);
    const auto* tuple = nodes_.get_if<TupleNode>(arguments);
    if (global == nullptr || tuple == nullptr) return fail("calls what is no function");
    Result<NodeId> made = call(nodes_, std::string(global->name), NodeIds(tuple->items));
    if (!made) return fail(made.error().text);
    stack_.push_back(*made);
  }
  // The class and its arguments: those of a `.metadata` have none, BUILD sets their attributes.
  void new_object() {
    const NodeId arguments = pop();
    const NodeId type = pop();
    const auto* global = nodes_.get_if<GlobalNode>(type);
    const auto* tuple = nodes_.get_if<TupleNode>(arguments);
    const bool is_object =
        global != nullptr && is_dcp_class(global->name) && tuple != nullptr && tuple->items.empty();
    if (!is_object) return fail("makes an object that a checkpoint does not have");
    push(ObjectNode{std::string(global->name), std::nullopt});
  }
  // Sets attributes. Value omits those of a dictionary.
  void build() {
    const NodeId state = pop();
    if (auto* object = nodes_.get_if<ObjectNode>(top())) {
      if (object->state) return fail("sets the attributes of an object twice");
      object->state = state;
      return;
    }
    if (nodes_.get_if<DictNode>(top()) == nullptr) fail("sets attributes of what has none");
  }
  // The tuple ("storage", type, key, location, numel[, view])
  void storage() {
    if (nodes_.may_embed()) return fail("refers to a storage outside of the object");
    const NodeId id = pop();
    const auto* tuple = nodes_.get_if<TupleNode>(id);
    // The legacy format has a sixth item, None.
    const bool has_size =
        tuple != nullptr && (tuple->items.size() == 5 || tuple->items.size() == 6);
    if (!has_size) return fail("has a foreign persistent id");
    const auto* kind = nodes_.simple<std::string>(tuple->items[0]);
    const auto* type = nodes_.get_if<GlobalNode>(tuple->items[1]);
    const auto* key = nodes_.simple<std::string>(tuple->items[2]);
    const auto* location = nodes_.simple<std::string>(tuple->items[3]);
    const auto* numel = nodes_.simple<int64_t>(tuple->items[4]);
    const auto dtype = type == nullptr ? std::nullopt : dtype_of_storage(type->name);
    if (kind == nullptr || *kind != "storage" || !dtype || key == nullptr || numel == nullptr ||
        *numel < 0) {
      return fail("has a persistent id that is no storage");
    }
    push(StorageNode{*key, *dtype, *numel, location == nullptr ? std::string() : *location});
  }

  ByteReader in_;
  const ReadLimits& limits_;
  Nodes& nodes_;
  std::vector<NodeId> stack_;
  std::unordered_map<size_t, NodeId> memo_;
  bool is_done_ = false;
};

}  // namespace

Result<OnePickle> read_one(std::string_view bytes, Nodes& nodes) {
  return Machine(bytes, nodes).run();
}

Result<Value> read(std::string_view bytes, const ReadLimits& limits) {
  Nodes nodes(limits);
  return unfolded(bytes, nodes, false);
}

Result<Value> read_dcp_metadata(std::string_view bytes, const ReadLimits& limits) {
  Nodes nodes(limits, nullptr, true);
  return unfolded(bytes, nodes, true);
}

Result<Object> read_object(std::string_view bytes, const ReadLimits& limits) {
  Object object;
  Nodes nodes(limits, &object.storages);
  Result<Value> value = unfolded(bytes, nodes, true);
  if (!value) return value.error();
  object.value = std::move(*value);
  return object;
}

}  // namespace cpprun::pickle
