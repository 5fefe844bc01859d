#include "cpprun/snapshot/state/tensors.hpp"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include <sstream>
#include <stdexcept>

#include "snapshot_files/pickle/dtype.hpp"

namespace cpprun::snapshot {
namespace {

at::ScalarType scalar_type(const std::string& dtype) {
  const auto& known = c10::getStringToDtypeMap();
  const auto found = known.find(dtype);
  if (found == known.end()) throw std::runtime_error("LibTorch has no dtype '" + dtype + "'");
  return found->second;
}

// Throws for dtypes that the format lacks (bits, integers of less than a byte).
std::string dtype_name(const at::Tensor& tensor) {
  const std::string name(c10::getDtypeNames(tensor.scalar_type()).first);
  if (pickle::find_dtype(name) == nullptr) {
    std::ostringstream text;
    text << "a tensor of the dtype " << name << " can't be kept, it has the shape "
         << tensor.sizes() << ": keep it as another dtype";
    throw std::invalid_argument(text.str());
  }
  return name;
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

void read(const Storages& storages, const pickle::TensorRef& ref, uint64_t from,
          std::span<std::byte> into) {
  const Status status = storages.read(ref.storage, from, into);
  if (!status) throw std::runtime_error(status.error().text);
}

at::Tensor whole_storage(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  return at::empty({0}, tensor.options().dtype(at::kByte).requires_grad(false))
      .set_(storage, 0, {static_cast<int64_t>(storage.nbytes())}, {1});
}

}  // namespace

pickle::TensorRef Capture::add(const at::Tensor& given, bool is_leaders) {
  if (!given.defined() || given.layout() != at::kStrided || given.is_quantized()) {
    throw std::invalid_argument("a tensor without a storage of its own can't be kept: " +
                                (given.defined() ? given.toString() : "it is undefined"));
  }
  std::string dtype = dtype_name(given);
  const at::Tensor tensor = given.detach().resolve_conj().resolve_neg();
  const auto key = std::pair<const void*, int>(tensor.storage().unsafeGetStorageImpl(),
                                               static_cast<int>(tensor.scalar_type()));
  const auto [entry, is_new] = known_.emplace(key, storages_.size());
  if (is_new) {
    storages_.push_back({std::to_string(storages_.size()), whole_storage(tensor), is_leaders});
  }
  const auto item = static_cast<int64_t>(tensor.itemsize());
  return {.storage = storages_[entry->second].name,
          .dtype = std::move(dtype),
          .storage_numel = storages_[entry->second].bytes.numel() / item,
          .offset = tensor.storage_offset(),
          .sizes = tensor.sizes().vec(),
          .strides = tensor.strides().vec(),
          .requires_grad = false};
}

// Reads only the range of the storage that the tensor uses.
at::Tensor make_tensor(const pickle::TensorRef& ref, const Storages& storages) {
  const auto type = scalar_type(ref.dtype);
  int64_t seen = 1;  // elements from the first to the last one used
  for (size_t i = 0; i < ref.sizes.size(); ++i) {
    seen = ref.sizes[i] == 0 ? 0 : seen == 0 ? 0 : seen + (ref.sizes[i] - 1) * ref.strides[i];
  }
  const at::Tensor flat = at::empty({seen}, type);
  const auto item = static_cast<uint64_t>(flat.itemsize());
  if (seen > 0) read(storages, ref, static_cast<uint64_t>(ref.offset) * item, bytes_of(flat));
  if (ref.is_conjugate) flat.conj_physical_();
  if (ref.is_negative) flat.neg_();
  return flat.as_strided(ref.sizes, ref.strides);
}

void fill(const at::Tensor& into, const pickle::TensorRef& ref, const Storages& storages) {
  const at::Tensor target = into.detach();
  const bool is_lazy = ref.is_conjugate || ref.is_negative || target.is_conj() || target.is_neg();
  const bool is_alike = !is_lazy && target.device().is_cpu() &&
                        target.is_non_overlapping_and_dense() &&
                        target.scalar_type() == scalar_type(ref.dtype) &&
                        target.strides() == at::IntArrayRef(ref.strides);
  if (!is_alike) {
    target.copy_(make_tensor(ref, storages));
    return;
  }
  const auto from = static_cast<uint64_t>(ref.offset) * static_cast<uint64_t>(target.itemsize());
  if (target.nbytes() > 0) read(storages, ref, from, bytes_of(target));
}

void assign(at::Tensor& value, const pickle::TensorRef& ref, const Storages& storages) {
  const bool fits = value.defined() && value.sizes() == at::IntArrayRef(ref.sizes) &&
                    value.scalar_type() == scalar_type(ref.dtype) &&
                    at::has_internal_overlap(value) != at::MemOverlap::Yes;
  if (fits) return fill(value, ref, storages);
  const at::Device device = value.defined() ? value.device() : at::Device(at::kCPU);
  value = make_tensor(ref, storages).to(device);
}

}  // namespace cpprun::snapshot
