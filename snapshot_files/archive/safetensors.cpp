#include "snapshot_files/archive/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "snapshot_files/archive/safetensors_header.hpp"
#include "snapshot_files/archive/tree.hpp"
#include "snapshot_files/pickle/dtype.hpp"

namespace cpprun::archive {
namespace {

// Nothing if the tensor has more elements than its storage: an expanded tensor.
std::optional<uint64_t> bytes_of_elements(const pickle::TensorRef& tensor) {
  if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end()) return 0;
  int64_t count = 1;
  for (const int64_t size : tensor.sizes) {
    if (__builtin_mul_overflow(count, size, &count) || count > tensor.storage_numel) {
      return std::nullopt;
    }
  }
  return static_cast<uint64_t>(count * pickle::find_dtype(tensor.dtype)->bytes);
}

// Elements in row-major order, gathered along the strides.
std::vector<std::byte> in_order(const pickle::TensorRef& tensor, ConstBytes storage) {
  const auto size = static_cast<size_t>(pickle::find_dtype(tensor.dtype)->bytes);
  std::vector<std::byte> out(bytes_of_elements(tensor).value_or(0));
  std::vector<int64_t> index(tensor.sizes.size(), 0);
  int64_t at = tensor.offset;
  for (size_t done = 0; done < out.size(); done += size) {
    std::memcpy(out.data() + done, storage.data() + static_cast<size_t>(at) * size, size);
    for (size_t d = index.size(); d-- > 0;) {
      at += tensor.strides[d];
      if (++index[d] < tensor.sizes[d]) break;
      at -= tensor.strides[d] * tensor.sizes[d];
      index[d] = 0;
    }
  }
  return out;
}

Result<std::string> make_header(const std::string& file, const std::vector<NamedTensor>& tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const NamedTensor& named : tensors) {
    const auto refused = [&](const std::string& why) {
      return Error{ErrorKind::BadValue, file + ": tensor '" + named.name + "' " + why};
    };
    const std::optional<uint64_t> bytes = bytes_of_elements(named.tensor);
    if (!bytes) return refused("is expanded; make it contiguous before it is saved");
    if (named.tensor.is_conjugate || named.tensor.is_negative) {
      return refused(
          "is a lazy negative or conjugate, which safetensors does not have; call resolve_neg() or "
          "resolve_conj() before it is saved");
    }
    entries.push_back({.name = named.name,
                       .dtype = named.tensor.dtype,
                       .shape = named.tensor.sizes,
                       .bytes = *bytes});
  }
  Result<std::string> header = encode_safetensors_header(entries, {{"format", "pt"}});
  if (header) return header;
  return Error{ErrorKind::BadValue, file + ": " + header.error().text};
}

}  // namespace

std::vector<NamedTensor> tensors_of(const pickle::Value& value, char separator) {
  std::vector<NamedTensor> all;
  for (Leaf& leaf : leaves_of(value, separator)) {
    const auto* tensor = leaf.value->get_if<pickle::TensorRef>();
    if (tensor != nullptr) all.push_back({std::move(leaf.path), *tensor});
  }
  return all;
}

Status write_safetensors(Output& output, const TensorFile& file,
                         const std::vector<NamedTensor>& tensors) {
  Result<std::string> header = make_header(file.name(), tensors);
  if (!header) return header.error();
  if (Status wrote = output.write_at(0, bytes_of(*header)); !wrote.ok()) return wrote;
  uint64_t at = header->size();
  std::optional<std::string> in_storage;  // name of the storage read last: others often share it
  std::vector<std::byte> storage;
  for (const NamedTensor& named : tensors) {
    if (in_storage != named.tensor.storage) {
      in_storage = named.tensor.storage;
      storage.resize(file.storage_bytes(*in_storage));
      if (Status read = file.read_storage(*in_storage, storage); !read) return read;
    }
    const std::vector<std::byte> bytes = in_order(named.tensor, storage);
    if (Status wrote = output.write_at(at, bytes); !wrote.ok()) return wrote;
    at += bytes.size();
  }
  return {};
}

}  // namespace cpprun::archive
