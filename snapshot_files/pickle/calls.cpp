// The fixed list of globals, and the results of calling them. dcp_globals.cpp has those that only
// the `.metadata` of torch.distributed.checkpoint names.
#include <algorithm>
#include <array>
#include <map>

#include "snapshot_files/pickle/nodes.hpp"

namespace cpprun::pickle {
namespace {

constexpr std::string_view kTorch = "torch.";
constexpr std::array<std::string_view, 3> kUntyped{
    "torch.storage.UntypedStorage", "torch.UntypedStorage", "torch.storage._UntypedStorage"};

Error bad_arguments(const std::string& global) {
  return Error{ErrorKind::Protocol, global + " is called with arguments that it does not have"};
}

std::optional<std::vector<int64_t>> numbers(Nodes& nodes, NodeId id) {
  const auto* tuple = nodes.get_if<TupleNode>(id);
  if (tuple == nullptr) return std::nullopt;
  std::vector<int64_t> all;
  for (const NodeId item : tuple->items) {
    const auto* number = nodes.simple<int64_t>(item);
    if (number == nullptr) return std::nullopt;
    all.push_back(*number);
  }
  return all;
}

// Checks that the last element that sizes and strides reach lies within the storage.
bool is_within(const TensorRef& tensor) {
  const auto is_negative = [](int64_t number) { return number < 0; };
  if (tensor.offset < 0 || std::ranges::any_of(tensor.sizes, is_negative) ||
      std::ranges::any_of(tensor.strides, is_negative)) {
    return false;
  }
  if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end()) return true;
  int64_t last = tensor.offset;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return false;
    }
  }
  return last < tensor.storage_numel;
}

// Reads {"conj": True, "neg": True}, each key optional. False: it is something else.
bool read_metadata(Nodes& nodes, NodeId id, TensorRef& tensor) {
  if (nodes.simple<None>(id) != nullptr) return true;
  const auto* dict = nodes.get_if<DictNode>(id);
  if (dict == nullptr) return false;
  for (size_t i = 0; i + 1 < dict->keys_and_values.size(); i += 2) {
    const auto* key = nodes.simple<std::string>(dict->keys_and_values[i]);
    const auto* is_set = nodes.simple<bool>(dict->keys_and_values[i + 1]);
    if (key == nullptr || is_set == nullptr) return false;
    if (*key == "conj")
      tensor.is_conjugate = *is_set;
    else if (*key == "neg")
      tensor.is_negative = *is_set;
    else
      return false;
  }
  return true;
}

// Arguments: (storage, offset, sizes, strides, requires_grad, hooks[, metadata]); _v3 has the dtype
// before the metadata.
Result<NodeId> rebuild_tensor(Nodes& nodes, const std::string& global, const NodeIds& arguments) {
  const bool has_dtype = global.ends_with("_v3");
  if (arguments.size() < (has_dtype ? 7U : 6U)) return bad_arguments(global);
  const auto* storage = nodes.get_if<StorageNode>(arguments[0]);
  const auto* offset = nodes.simple<int64_t>(arguments[1]);
  const auto* grad = nodes.simple<bool>(arguments[4]);
  auto sizes = numbers(nodes, arguments[2]);
  auto strides = numbers(nodes, arguments[3]);
  if (storage == nullptr || offset == nullptr || grad == nullptr || !sizes || !strides ||
      sizes->size() != strides->size()) {
    return bad_arguments(global);
  }
  TensorRef made{storage->key,      storage->dtype,      storage->numel, *offset,
                 std::move(*sizes), std::move(*strides), *grad};
  if (has_dtype) {
    const auto* named = nodes.get_if<GlobalNode>(arguments[6]);
    if (named == nullptr) return bad_arguments(global);
    made.dtype = in_torch(named->name);
    // Else the number of elements would be that of another dtype.
    if (!storage->dtype.empty() && storage->dtype != made.dtype) return bad_arguments(global);
  }
  const size_t metadata = has_dtype ? 7 : 6;
  if (arguments.size() > metadata && !read_metadata(nodes, arguments[metadata], made)) {
    return bad_arguments(global);
  }
  const DtypeInfo* dtype = find_dtype(made.dtype);
  if (dtype == nullptr) return bad_arguments(global);
  if (storage->dtype.empty()) made.storage_numel /= dtype->bytes;
  if (!is_within(made)) {
    return Error{ErrorKind::Protocol, "a tensor reaches beyond storage '" + made.storage + "'"};
  }
  return nodes.add(Value(std::move(made)));
}

// Arguments: (tensor, requires_grad, hooks)
Result<NodeId> rebuild_parameter(Nodes& nodes, const std::string& global,
                                 const NodeIds& arguments) {
  if (arguments.size() != 3) return bad_arguments(global);
  const auto* tensor = nodes.simple<TensorRef>(arguments[0]);
  const auto* grad = nodes.simple<bool>(arguments[1]);
  if (tensor == nullptr || grad == nullptr) return bad_arguments(global);
  TensorRef made = *tensor;
  made.requires_grad = *grad;
  return nodes.add(Value(std::move(made)));
}

// Arguments: () or ([(key, value), ...],)
Result<NodeId> ordered_dict(Nodes& nodes, const std::string& global, const NodeIds& arguments) {
  DictNode made;
  const auto* list = arguments.empty() ? nullptr : nodes.get_if<ListNode>(arguments[0]);
  if (arguments.size() > 1 || (arguments.size() == 1 && list == nullptr)) {
    return bad_arguments(global);
  }
  for (const NodeId item : list == nullptr ? NodeIds{} : list->items) {
    const NodeIds* pair = nodes.items(item);
    if (pair == nullptr || pair->size() != 2) return bad_arguments(global);
    made.keys_and_values.insert(made.keys_and_values.end(), pair->begin(), pair->end());
  }
  return nodes.add(std::move(made));
}

// Arguments: () or (dict,), which maps each element to its count.
Result<NodeId> counter(Nodes& nodes, const std::string& global, const NodeIds& arguments) {
  if (arguments.empty()) return nodes.add(DictNode{});
  if (arguments.size() > 1 || nodes.get_if<DictNode>(arguments[0]) == nullptr) {
    return bad_arguments(global);
  }
  return arguments[0];
}

// Protocol 2 has no bytes: Python encodes them as latin-1 text.
Result<NodeId> encode(Nodes& nodes, const std::string& global, const NodeIds& arguments) {
  const bool has_two = arguments.size() == 2;
  const auto* text = has_two ? nodes.simple<std::string>(arguments[0]) : nullptr;
  const auto* codec = has_two ? nodes.simple<std::string>(arguments[1]) : nullptr;
  if (text == nullptr || codec == nullptr || *codec != "latin1") return bad_arguments(global);
  Bytes made;
  for (size_t i = 0; i < text->size(); ++i) {
    const auto byte = static_cast<unsigned char>((*text)[i]);
    if (byte < 0x80) {
      made.bytes += static_cast<char>(byte);
      continue;
    }
    const auto next = i + 1 < text->size() ? static_cast<unsigned char>((*text)[++i]) : 0;
    const bool is_latin1 = (byte == 0xC2 || byte == 0xC3) && (next & 0xC0) == 0x80;
    if (!is_latin1) return bad_arguments(global);
    made.bytes += static_cast<char>((byte & 3) << 6 | (next & 0x3F));
  }
  return nodes.add(Value(std::move(made)));
}

Result<NodeId> complex(Nodes& nodes, const std::string& global, const NodeIds& arguments) {
  const bool has_two = arguments.size() == 2;
  const auto* real = has_two ? nodes.simple<double>(arguments[0]) : nullptr;
  const auto* imaginary = has_two ? nodes.simple<double>(arguments[1]) : nullptr;
  if (real == nullptr || imaginary == nullptr) return bad_arguments(global);
  return nodes.add(Value(Complex{*real, *imaginary}));
}

// torch.Size(tuple), set(list), torch.device(text): returns the argument.
Result<NodeId> itself(Nodes&, const std::string& global, const NodeIds& arguments) {
  if (arguments.empty()) return bad_arguments(global);
  return arguments[0];
}

// The amount that a call with this argument may copy.
size_t size_of(Nodes& nodes, NodeId id) {
  if (const auto* text = nodes.simple<std::string>(id)) return text->size();
  if (const auto* bytes = nodes.simple<Bytes>(id)) return bytes->bytes.size();
  if (const NodeIds* items = nodes.items(id)) return items->size();
  if (const auto* dict = nodes.get_if<DictNode>(id)) return dict->keys_and_values.size();
  if (const auto* tensor = nodes.simple<TensorRef>(id)) return tensor->sizes.size();
  return 0;
}

using Call = Result<NodeId> (*)(Nodes&, const std::string&, const NodeIds&);

const std::map<std::string_view, Call>& callables() {
  static const std::map<std::string_view, Call> all{
      {"torch._utils._rebuild_tensor_v2", rebuild_tensor},
      {"torch._utils._rebuild_tensor_v3", rebuild_tensor},
      {"torch._utils._rebuild_parameter", rebuild_parameter},
      {"collections.OrderedDict", ordered_dict},
      {"collections.Counter", counter},
      {"_codecs.encode", encode},
      {"builtins.complex", complex},
      {"__builtin__.complex", complex},
      {"builtins.set", itself},
      {"__builtin__.set", itself},
      {"torch.Size", itself},
      {"torch.device", itself},
      {"torch.storage._load_from_bytes", load_from_bytes},
  };
  return all;
}

}  // namespace

std::string in_torch(std::string_view global) {
  return global.starts_with(kTorch) ? std::string(global.substr(kTorch.size())) : "";
}

std::optional<std::string> dtype_of_storage(std::string_view name) {
  if (std::ranges::count(kUntyped, name) != 0) return "";
  const std::string storage = in_torch(name);
  const auto* found = std::ranges::find(kDtypes, storage, &DtypeInfo::storage);
  if (storage.empty() || found == kDtypes.end()) return std::nullopt;
  return std::string(found->name);
}

const DtypeInfo* find_dtype(std::string_view name) {
  const auto* found = std::ranges::find(kDtypes, name, &DtypeInfo::name);
  return found == kDtypes.end() ? nullptr : found;
}

bool is_known_global(std::string_view name) {
  return callables().contains(name) || dtype_of_storage(name) || find_dtype(in_torch(name));
}

Result<NodeId> call(Nodes& nodes, const std::string& global, const NodeIds& arguments) {
  const auto found = callables().find(global);
  if (found == callables().end() && !nodes.is_dcp()) {
    return Error{ErrorKind::Protocol, global + " cannot be called"};
  }
  size_t copies = arguments.size();
  for (const NodeId id : arguments) copies += size_of(nodes, id);
  if (!nodes.may_copy(copies)) return Error{ErrorKind::Protocol, "calls copy too much"};
  if (found == callables().end()) return call_dcp(nodes, global, arguments);
  return found->second(nodes, global, arguments);
}

}  // namespace cpprun::pickle
