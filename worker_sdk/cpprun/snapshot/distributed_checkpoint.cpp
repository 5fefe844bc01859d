#include "cpprun/snapshot/distributed_checkpoint.hpp"

#include <torch/nn/module.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>

#include "common/limits/snapshots.hpp"
#include "common/text.hpp"
#include "cpprun/snapshot/state/load_by_name.hpp"
#include "cpprun/snapshot/state/tensors.hpp"
#include "snapshot_files/archive/dcp_metadata.hpp"
#include "snapshot_files/archive/slice_source.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/archive/tree.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun {
namespace {

using archive::DcpChunk;
using archive::DcpPlace;
using archive::DcpTensor;

constexpr const char* kMetadata = ".metadata";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + ": " + why);
}

// For the errors of file operations, which name the path themselves.
template <class T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text);
  return std::move(*result);
}

std::string in_quotes(const std::string& name) { return "'" + text::printable(name) + "'"; }

// Verifies the checksum of each storage: DCP's files have no other.
class VerifiedStorages final : public snapshot::Storages {
 public:
  explicit VerifiedStorages(const archive::TensorFile& file) : file_(file) {}
  Status read(const std::string& name, uint64_t from, std::span<std::byte> into) const override {
    const uint64_t bytes = file_.storage_bytes(name);
    if (from == 0 && into.size() == bytes) return file_.read_storage(name, into);
    std::string whole(bytes, '\0');
    Status read = file_.read_storage(name, archive::writable_bytes_of(whole));
    if (read) std::memcpy(into.data(), whole.data() + from, into.size());
    return read;
  }

 private:
  const archive::TensorFile& file_;
};

}  // namespace

struct DistributedCheckpoint::Impl {
  explicit Impl(const std::string& given) : folder(given) {
    metadata = read_metadata();
    check_files();
  }
  archive::DcpMetadata read_metadata() const;
  void check_files() const;

  std::string path_of(const std::string& file) const {
    return (std::filesystem::path(folder) / file).string();
  }
  const DcpTensor& find(const std::string& name) const {
    const auto found = metadata.tensors.find(name);
    if (found == metadata.tensors.end()) refuse(folder, "it has no tensor " + in_quotes(name));
    return found->second;
  }
  at::ScalarType type_of(const std::string& name) const;
  // `what`: "tensor 'a'", for messages.
  archive::TensorFile open(const DcpPlace& place, const std::string& what) const;
  void read_chunk(const std::string& name, const DcpTensor& tensor, const DcpChunk& chunk,
                  const at::Tensor& into) const;

  const std::string folder;
  archive::DcpMetadata metadata;
};

archive::DcpMetadata DistributedCheckpoint::Impl::read_metadata() const {
  std::error_code ignored;  // opening reports it
  const std::string path = path_of(kMetadata);
  if (std::filesystem::is_directory(folder, ignored) && !std::filesystem::exists(path, ignored)) {
    refuse(folder,
           "the folder has no .metadata: it is no checkpoint of torch.distributed."
           "checkpoint, or its writing did not end");
  }
  const auto file = or_throw(snapshot_files::real_files().open_to_read(path, true));
  const uint64_t bytes = or_throw(file->size());
  if (bytes > limits::kDcpMetadataBytes) {
    refuse(path, "it has " + std::to_string(bytes) + " bytes, at most " +
                     std::to_string(limits::kDcpMetadataBytes) + " are allowed");
  }
  Result<archive::DcpMetadata> parsed =
      archive::parse_dcp_metadata(or_throw(file->read_text(0, bytes)));
  if (!parsed) refuse(path, parsed.error().text);
  return std::move(*parsed);
}

void DistributedCheckpoint::Impl::check_files() const {
  std::map<std::string, uint64_t> sizes;
  const auto check = [&](const std::string& what, const DcpPlace& place) {
    const auto [size, is_new] = sizes.emplace(place.file, 0);
    const std::string path = path_of(place.file);
    if (is_new) {
      size->second =
          or_throw(or_throw(snapshot_files::real_files().open_to_read(path, true))->size());
    }
    // Both are at most INT64_MAX, so their sum fits.
    if (place.offset + place.bytes <= size->second) return;
    refuse(path, "it was cut short: it has " + std::to_string(size->second) + " bytes, but " +
                     what + " lies from byte " + std::to_string(place.offset) + " to " +
                     std::to_string(place.offset + place.bytes));
  };
  for (const auto& [name, tensor] : metadata.tensors) {
    for (const DcpChunk& chunk : tensor.chunks) check("tensor " + in_quotes(name), chunk.place);
  }
  for (const auto& [name, place] : metadata.objects) check("object " + in_quotes(name), place);
}

at::ScalarType DistributedCheckpoint::Impl::type_of(const std::string& name) const {
  const DcpTensor& tensor = find(name);
  const auto& known = c10::getStringToDtypeMap();
  const auto found = known.find(tensor.dtype);
  if (found != known.end()) return found->second;
  refuse(folder, "tensor " + in_quotes(name) + " has the dtype " + tensor.dtype +
                     ", which this LibTorch lacks");
}

archive::TensorFile DistributedCheckpoint::Impl::open(const DcpPlace& place,
                                                      const std::string& what) const {
  const std::string path = path_of(place.file);
  std::shared_ptr<const archive::Source> file =
      or_throw(snapshot_files::real_files().open_to_read(path, true));
  const auto slice = std::make_shared<archive::SliceSource>(std::move(file), place.offset,
                                                            place.bytes, path + ": " + what);
  return or_throw(archive::TensorFile::open(slice));
}

void DistributedCheckpoint::Impl::read_chunk(const std::string& name, const DcpTensor& tensor,
                                             const DcpChunk& chunk, const at::Tensor& into) const {
  const archive::TensorFile file = open(chunk.place, "tensor " + in_quotes(name));
  const auto* ref = file.value().get_if<pickle::TensorRef>();
  if (ref == nullptr) refuse(file.name(), "something else than a tensor is in its place");
  if (ref->sizes != chunk.sizes || ref->dtype != tensor.dtype) {
    refuse(file.name(), "a part has the shape " + snapshot::shown(ref->sizes) + " and the dtype " +
                            ref->dtype + ", .metadata has " + snapshot::shown(chunk.sizes) +
                            " and " + tensor.dtype);
  }
  at::Tensor part = into;
  for (size_t i = 0; i < chunk.sizes.size(); ++i) {
    part = part.narrow(static_cast<int64_t>(i), chunk.offsets[i], chunk.sizes[i]);
  }
  snapshot::fill(part, *ref, VerifiedStorages(file));
}

DistributedCheckpoint::DistributedCheckpoint(const std::string& folder) : impl_(new Impl(folder)) {}
DistributedCheckpoint::~DistributedCheckpoint() = default;
DistributedCheckpoint::DistributedCheckpoint(DistributedCheckpoint&&) noexcept = default;
DistributedCheckpoint& DistributedCheckpoint::operator=(DistributedCheckpoint&&) noexcept = default;

std::vector<std::string> DistributedCheckpoint::names() const {
  std::vector<std::string> all;
  for (const auto& [name, tensor] : impl_->metadata.tensors) all.push_back(name);
  return all;
}

bool DistributedCheckpoint::contains(const std::string& name) const {
  return impl_->metadata.tensors.contains(name);
}

std::vector<int64_t> DistributedCheckpoint::shape(const std::string& name) const {
  return impl_->find(name).shape;
}

std::string DistributedCheckpoint::dtype(const std::string& name) const {
  return std::string(c10::getDtypeNames(impl_->type_of(name)).first);
}

at::Tensor DistributedCheckpoint::tensor(const std::string& name) const {
  const at::Tensor made = at::empty(impl_->find(name).shape, impl_->type_of(name));
  read(name, made);
  return made;
}

void DistributedCheckpoint::read(const std::string& name, const at::Tensor& into) const {
  const DcpTensor& tensor = impl_->find(name);
  static_cast<void>(impl_->type_of(name));  // throws for a dtype that LibTorch lacks
  const at::Tensor target = into.detach();
  if (target.sizes() != at::IntArrayRef(tensor.shape)) {
    refuse(impl_->folder, "tensor " + in_quotes(name) + " has the shape " +
                              snapshot::shown(tensor.shape) + ", wanted is " +
                              snapshot::shown(target.sizes()));
  }
  for (const DcpChunk& chunk : tensor.chunks) impl_->read_chunk(name, tensor, chunk, target);
}

std::vector<std::string> DistributedCheckpoint::object_names() const {
  std::vector<std::string> all;
  for (const auto& [name, place] : impl_->metadata.objects) all.push_back(name);
  return all;
}

dist::Object DistributedCheckpoint::object(const std::string& name) const {
  const auto found = impl_->metadata.objects.find(name);
  if (found == impl_->metadata.objects.end()) {
    const bool is_tensor = contains(name);
    refuse(impl_->folder,
           "it has no object " + in_quotes(name) + (is_tensor ? ", but a tensor" : ""));
  }
  const archive::TensorFile file = impl_->open(found->second, "object " + in_quotes(name));
  // loads() takes Python's plain pickle, in which the storages of tensors are embedded.
  pickle::Object made{file.value(), {}};
  archive::for_each_tensor(made.value, [&](const pickle::TensorRef& tensor) {
    const auto [storage, is_new] = made.storages.try_emplace(tensor.storage);
    if (!is_new) return;
    storage->second.bytes.resize(file.storage_bytes(tensor.storage));
    const Status read =
        file.read_storage(tensor.storage, archive::writable_bytes_of(storage->second.bytes));
    if (!read) throw std::runtime_error(read.error().text);
  });
  try {
    return dist::loads(pickle::write_object(made));
  } catch (const dist::DistError& error) {
    refuse(file.name(), error.what());
  }
}

void load_distributed_checkpoint(torch::nn::Module& module, const std::string& folder,
                                 const LoadDistributedCheckpointOptions& options) {
  snapshot::check_rules("load_distributed_checkpoint", options.names);
  const DistributedCheckpoint file(folder);
  snapshot::load_by_name(module, snapshot::TensorsOf<DistributedCheckpoint>(file), folder,
                         {options.prefix, options.names, options.strict, options.exact_dtype});
}

}  // namespace cpprun
