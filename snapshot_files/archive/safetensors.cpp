#include "snapshot_files/archive/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "common/json.hpp"
#include "snapshot_files/archive/tree.hpp"
#include "snapshot_files/pickle/dtype.hpp"

namespace cpprun::archive {
namespace {

struct TypeName {
  std::string_view torch, safetensors;
};
constexpr std::array<TypeName, 15> kTypes{{{"float64", "F64"},
                                           {"float32", "F32"},
                                           {"float16", "F16"},
                                           {"bfloat16", "BF16"},
                                           {"int64", "I64"},
                                           {"int32", "I32"},
                                           {"int16", "I16"},
                                           {"int8", "I8"},
                                           {"uint8", "U8"},
                                           {"bool", "BOOL"},
                                           {"uint16", "U16"},
                                           {"uint32", "U32"},
                                           {"uint64", "U64"},
                                           {"float8_e4m3fn", "F8_E4M3"},
                                           {"float8_e5m2", "F8_E5M2"}}};

std::string_view type_name(std::string_view dtype) {
  for (const TypeName& type : kTypes) {
    if (type.torch == dtype) return type.safetensors;
  }
  return {};
}

// Nothing if the tensor has more elements than its storage: an expanded tensor.
std::optional<uint64_t> bytes_of_elements(const pickle::TensorRef& tensor) {
  if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end()) return 0;
  int64_t count = 1;
  for (const int64_t size : tensor.sizes) {
    if (__builtin_mul_overflow(count, size, &count) || count > tensor.storage_numel) {
      return std::nullopt;
    }
  }
  return static_cast<uint64_t>(count * *pickle::size_of_dtype(tensor.dtype));
}

// Elements in row-major order, gathered along the strides.
std::vector<std::byte> in_order(const pickle::TensorRef& tensor, ConstBytes storage) {
  const auto size = static_cast<size_t>(*pickle::size_of_dtype(tensor.dtype));
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
  nlohmann::ordered_json header;
  std::set<std::string_view> names;
  uint64_t at = 0;
  for (const NamedTensor& named : tensors) {
    const std::string_view type = type_name(named.tensor.dtype);
    if (type.empty()) {
      return Error{ErrorKind::BadValue, file + ": tensor '" + named.name + "' has the dtype " +
                                            named.tensor.dtype +
                                            ", which safetensors does not have"};
    }
    if (named.name == "__metadata__" || !names.insert(named.name).second) {
      return Error{ErrorKind::BadValue, file + ": the name '" + named.name +
                                            "' can't stand in a safetensors file" +
                                            (named.name == "__metadata__" ? "" : " twice")};
    }
    const std::optional<uint64_t> bytes = bytes_of_elements(named.tensor);
    if (!bytes) {
      return Error{ErrorKind::BadValue, file + ": tensor '" + named.name +
                                            "' is expanded; make it contiguous before it is saved"};
    }
    if (named.tensor.is_conjugate || named.tensor.is_negative) {
      return Error{ErrorKind::BadValue,
                   file + ": tensor '" + named.name +
                       "' is a lazy negative or conjugate, which safetensors does not have; call "
                       "resolve_neg() or resolve_conj() before it is saved"};
    }
    const uint64_t end = at + *bytes;
    header[named.name] = {
        {"dtype", type}, {"shape", named.tensor.sizes}, {"data_offsets", {at, end}}};
    at = end;
  }
  header["__metadata__"] = {{"format", "pt"}};
  std::string text = dump_json(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

// Caches the storage that was read last: consecutive names often share one.
class Storages {
 public:
  explicit Storages(const TensorFile& file) : file_(file) {}
  Result<ConstBytes> get(const std::string& name) {
    if (!has_ || name != name_) {
      has_ = false;
      bytes_.resize(file_.storage_bytes(name));
      if (Status read = file_.read_storage(name, bytes_); !read.ok()) return read.error();
      name_ = name;
      has_ = true;
    }
    return ConstBytes(bytes_);
  }

 private:
  const TensorFile& file_;
  std::string name_;
  std::vector<std::byte> bytes_;
  bool has_ = false;
};

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
  const uint64_t header_bytes = header->size();
  std::string front(sizeof header_bytes, '\0');
  std::memcpy(front.data(), &header_bytes, sizeof header_bytes);
  front += *header;
  if (Status wrote = output.write_at(0, bytes_of(front)); !wrote.ok()) return wrote;
  uint64_t at = front.size();
  Storages storages(file);
  for (const NamedTensor& named : tensors) {
    Result<ConstBytes> storage = storages.get(named.tensor.storage);
    if (!storage) return storage.error();
    const std::vector<std::byte> bytes = in_order(named.tensor, *storage);
    if (Status wrote = output.write_at(at, bytes); !wrote.ok()) return wrote;
    at += bytes.size();
  }
  return {};
}

}  // namespace cpprun::archive
