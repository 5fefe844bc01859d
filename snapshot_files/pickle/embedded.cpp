// Storages within a pickle: torch.storage._load_from_bytes(bytes), whose argument is a file in the
// legacy format of torch.save. It has five pickles (a magic number, a version, facts of the
// machine, the storage, the list of its keys), then the number of elements and the elements.
#include <cstring>

#include "snapshot_files/pickle/legacy_format.hpp"
#include "snapshot_files/pickle/nodes.hpp"

namespace cpprun::pickle {
namespace {

constexpr size_t kPickles = 5;
using Tops = std::array<NodeId, kPickles>;

Error malformed(const std::string& why) {
  return Error{ErrorKind::Protocol, "the bytes of a storage " + why};
}

// Removes the pickles from `bytes`.
Result<Tops> take_pickles(std::string_view& bytes, Nodes& nodes) {
  Tops tops{};
  for (NodeId& top : tops) {
    const Result<OnePickle> one = read_one(bytes, nodes);
    if (!one) return malformed("have a " + one.error().text);
    top = one->top;
    bytes.remove_prefix(one->bytes);
  }
  return tops;
}

bool is_known_version(Nodes& nodes, const Tops& tops) {
  const auto* magic = nodes.simple<BigInt>(tops[0]);
  const auto* version = nodes.simple<int64_t>(tops[1]);
  return magic != nullptr && magic->bytes == legacy::kMagic && version != nullptr &&
         *version == legacy::kVersion;
}

bool is_little_endian(Nodes& nodes, NodeId machine) {
  const auto* dict = nodes.get_if<DictNode>(machine);
  if (dict == nullptr) return false;
  for (size_t i = 0; i + 1 < dict->keys_and_values.size(); i += 2) {
    const auto* key = nodes.simple<std::string>(dict->keys_and_values[i]);
    const auto* value = nodes.simple<bool>(dict->keys_and_values[i + 1]);
    if (key != nullptr && *key == "little_endian") return value != nullptr && *value;
  }
  return false;
}

bool is_only_key(Nodes& nodes, NodeId keys, const std::string& key) {
  const auto* list = nodes.get_if<ListNode>(keys);
  const auto* one = list == nullptr || list->items.size() != 1
                        ? nullptr
                        : nodes.simple<std::string>(list->items[0]);
  return one != nullptr && *one == key;
}

// Whether `bytes` are the number of elements and the elements of `storage`.
bool is_content(std::string_view bytes, const StorageNode& storage) {
  int64_t numel = 0;
  if (bytes.size() < sizeof numel) return false;
  std::memcpy(&numel, bytes.data(), sizeof numel);
  const int64_t item = storage.dtype.empty() ? 1 : find_dtype(storage.dtype)->bytes;
  int64_t wanted = 0;
  return numel == storage.numel && !__builtin_mul_overflow(numel, item, &wanted) &&
         static_cast<uint64_t>(wanted) == bytes.size() - sizeof numel;
}

}  // namespace

Result<NodeId> load_from_bytes(Nodes& nodes, const std::string& global, const NodeIds& arguments) {
  const auto* given = arguments.size() == 1 ? nodes.simple<Bytes>(arguments[0]) : nullptr;
  if (given == nullptr) return malformed("are no argument of " + global);
  if (!nodes.may_embed()) return malformed("stand in a pickle that has none");
  std::string_view bytes = given->bytes;
  Nodes inner(nodes.limits());
  const Result<Tops> tops = take_pickles(bytes, inner);
  if (!tops) return tops.error();
  if (!is_known_version(inner, *tops)) return malformed("are of an unknown format");
  if (!is_little_endian(inner, (*tops)[2])) return malformed("are not little endian");
  const auto* storage = inner.get_if<StorageNode>((*tops)[3]);
  if (storage == nullptr || !is_only_key(inner, (*tops)[4], storage->key)) {
    return malformed("have no storage or several");
  }
  if (!is_content(bytes, *storage)) return malformed("are of another length than its elements");
  bytes.remove_prefix(sizeof(int64_t));
  StorageNode made{{}, storage->dtype, storage->numel, storage->location};
  made.key = nodes.embed({std::string(bytes), storage->location});
  return nodes.add(std::move(made));
}

}  // namespace cpprun::pickle
