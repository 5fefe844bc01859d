// The globals that only the `.metadata` of torch.distributed.checkpoint names: its dataclasses, and
// the calls by which Python pickles an enum, a layout and a path.
#include <algorithm>
#include <array>

#include "snapshot_files/pickle/nodes.hpp"

namespace cpprun::pickle {
namespace {

constexpr std::array<std::string_view, 9> kClasses{
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.distributed.checkpoint.metadata.BytesStorageMetadata",
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata",
    "torch.distributed.checkpoint.metadata.Metadata",
    "torch.distributed.checkpoint.metadata.MetadataIndex",
    "torch.distributed.checkpoint.metadata.StorageMeta",
    "torch.distributed.checkpoint.metadata.TensorProperties",
    "torch.distributed.checkpoint.metadata.TensorStorageMetadata",
    "torch.distributed._shard.sharded_tensor.metadata.TensorProperties",  // torch before 2.3
};
// The encoding of a memory format.
constexpr std::array<std::string_view, 2> kEnums{
    "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING",
    "torch.distributed._shard.sharded_tensor.metadata.MEM_FORMAT_ENCODING",
};
constexpr std::array<std::string_view, 4> kPaths{
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "pathlib._local.PosixPath",  // Python 3.13
    "pathlib._local.WindowsPath",
};
constexpr std::string_view kLayout = "torch.serialization._get_layout";
constexpr std::string_view kGetAttribute = "builtins.getattr";

template <size_t kSize>
bool has(const std::array<std::string_view, kSize>& all, std::string_view name) {
  return std::ranges::find(all, name) != all.end();
}

// Python 3.11 names a member of an enum by getattr(class, name), others by class(value).
bool is_member_of_enum(Nodes& nodes, const NodeIds& arguments) {
  if (arguments.size() != 2) return false;
  const auto* type = nodes.get_if<GlobalNode>(arguments[0]);
  return type != nullptr && has(kEnums, type->name) &&
         nodes.simple<std::string>(arguments[1]) != nullptr;
}

}  // namespace

bool is_dcp_class(std::string_view name) { return has(kClasses, name); }

bool is_dcp_global(std::string_view name) {
  return is_dcp_class(name) || has(kEnums, name) || has(kPaths, name) || name == kLayout ||
         name == kGetAttribute;
}

// Returns what identifies the object: the name or value of an enum's member, the parts of a path.
Result<NodeId> call_dcp(Nodes& nodes, const std::string& global, const NodeIds& arguments) {
  if (global == kGetAttribute && is_member_of_enum(nodes, arguments)) return arguments[1];
  if (has(kPaths, global)) return nodes.add(TupleNode{arguments});
  const bool has_one = arguments.size() == 1 && nodes.get_if<Value>(arguments[0]) != nullptr;
  if ((has(kEnums, global) || global == kLayout) && has_one) return arguments[0];
  return Error{ErrorKind::Protocol, global + " cannot be called so"};
}

}  // namespace cpprun::pickle
