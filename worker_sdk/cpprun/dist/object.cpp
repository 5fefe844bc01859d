// Converts between Object, which holds tensors, and the pickle codec's values, which refer to
// bytes.
#include "cpprun/dist/object.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <tuple>

#include "cpprun/dist/process_group.hpp"
#include "snapshot_files/pickle/dtype.hpp"
#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun::dist {
namespace {

constexpr size_t kDimensionsMax = 64;

std::string torch_name(at::ScalarType type) {
  return std::string(c10::getDtypeNames(type).first);  // a string_view from LibTorch 2.15 on
}

at::ScalarType scalar_type(const std::string& name) {
  const auto& known = c10::getStringToDtypeMap();
  const auto found = known.find(name);
  if (found == known.end()) throw DistMismatchError("malformed object: no dtype '" + name + "'");
  return found->second;
}

class Writing {
 public:
  std::string finish(const Object& object) {
    made_.value = value_of(object);
    return pickle::write_object(made_);
  }

 private:
  pickle::Value value_of(const Object& object) {
    return std::visit([this](const auto& held) { return converted(held); }, object.held());
  }
  pickle::Value converted(const None&) { return pickle::None{}; }
  pickle::Value converted(const BigInt& value) { return pickle::BigInt{value.bytes}; }
  pickle::Value converted(const std::complex<double>& value) {
    return pickle::Complex{value.real(), value.imag()};
  }
  // A str of Python's is valid UTF-8.
  pickle::Value converted(const std::string& text) { return pickle::text_or_bytes(text); }
  pickle::Value converted(const Bytes& value) { return pickle::Bytes{value.bytes}; }
  pickle::Value converted(const List& list) { return pickle::List{values_of(list.items)}; }
  pickle::Value converted(const Tuple& tuple) { return pickle::Tuple{values_of(tuple.items)}; }
  pickle::Value converted(const Dict& dict) {
    pickle::Dict made;
    for (const auto& [key, value] : dict.pairs) {
      made.pairs.emplace_back(value_of(key), value_of(value));
    }
    return made;
  }
  pickle::Value converted(at::ScalarType type) { return pickle::Dtype{torch_name(type)}; }
  template <class T>
  requires std::is_arithmetic_v<T> pickle::Value converted(T number) { return number; }

  pickle::Value converted(const at::Tensor& given) {
    if (!given.defined()) return pickle::None{};
    const std::string dtype = torch_name(given.scalar_type());
    const bool is_dense = given.layout() == at::kStrided && !given.is_quantized();
    if (!is_dense || pickle::find_dtype(dtype) == nullptr) {
      throw DistUnsupportedError("an object has only dense tensors of numbers, this one is " +
                                 c10::str(given.layout(), ' ', given.scalar_type()));
    }
    const at::Tensor dense = given.detach().cpu().resolve_conj().resolve_neg().contiguous();
    std::string name = std::to_string(made_.storages.size());
    std::string bytes(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes());
    made_.storages[name] = {std::move(bytes), given.device().str()};
    return pickle::TensorRef{.storage = std::move(name),
                             .dtype = dtype,
                             .storage_numel = dense.numel(),
                             .sizes = dense.sizes().vec(),
                             .strides = dense.strides().vec(),
                             .requires_grad = given.requires_grad()};
  }
  pickle::Values values_of(const std::vector<Object>& items) {
    pickle::Values made;
    for (const Object& item : items) made.push_back(value_of(item));
    return made;
  }

  pickle::Object made_;
};

class Reading {
 public:
  explicit Reading(const pickle::Object& from) : from_(from) {}
  Object finish() { return object_of(from_.value); }

 private:
  Object object_of(const pickle::Value& value) {
    return std::visit([this](const auto& held) { return converted(held); }, value.held());
  }
  Object converted(const pickle::None&) { return None{}; }
  Object converted(const pickle::BigInt& value) { return BigInt{value.bytes}; }
  Object converted(const pickle::Complex& value) {
    return std::complex<double>(value.real, value.imaginary);
  }
  Object converted(const std::string& text) { return text; }
  Object converted(const pickle::Bytes& value) { return Bytes{value.bytes}; }
  Object converted(const pickle::List& list) { return List{objects_of(list.items)}; }
  Object converted(const pickle::Tuple& tuple) { return Tuple{objects_of(tuple.items)}; }
  Object converted(const pickle::Dict& dict) {
    Dict made;
    for (const auto& [key, value] : dict.pairs) {
      made.pairs.emplace_back(object_of(key), object_of(value));
    }
    return made;
  }
  Object converted(const pickle::Dtype& dtype) { return scalar_type(dtype.name); }
  template <class T>
  requires std::is_arithmetic_v<T> Object converted(T number) { return number; }
  Object converted(const pickle::TensorRef& ref) {
    try {
      return tensor_of(ref);
    } catch (const c10::Error& error) {
      throw DistMismatchError(std::string("malformed object: a tensor: ") +
                              error.what_without_backtrace());
    }
  }

  at::Tensor tensor_of(const pickle::TensorRef& ref) {
    if (ref.sizes.size() > kDimensionsMax) {
      throw DistMismatchError("malformed object: a tensor of " + std::to_string(ref.sizes.size()) +
                              " dimensions");
    }
    const auto type = scalar_type(ref.dtype);
    at::Tensor value = elements_of(ref, type).as_strided(ref.sizes, ref.strides, ref.offset);
    const std::string& location = from_.storages.at(ref.storage).location;
    if (location.starts_with("cuda") && is_initialized()) value = value.to(local_device());
    const bool can_have_gradient = at::isFloatingType(type) || at::isComplexType(type);
    if (ref.requires_grad && can_have_gradient) value.set_requires_grad(true);
    return value;
  }
  // A bool of another byte than 0 or 1 is undefined behaviour.
  static void check_bools(const at::Tensor& flat) {
    if (flat.scalar_type() != at::kBool) return;
    const auto* begin = static_cast<const char*>(flat.const_data_ptr());
    const bool is_valid =
        std::all_of(begin, begin + flat.numel(), [](char c) { return (c & ~1) == 0; });
    if (!is_valid) throw DistMismatchError("malformed object: a tensor of bools that are none");
  }
  // The elements of a storage. A pickle may refer to one storage often, so each kind of elements is
  // made and checked once.
  at::Tensor elements_of(const pickle::TensorRef& ref, at::ScalarType type) {
    const auto key = std::tuple(ref.storage, type, ref.is_conjugate, ref.is_negative);
    at::Tensor& made = elements_[key];
    if (made.defined()) return made;
    const at::Tensor storage = storage_of(ref.storage);
    const auto item = static_cast<int64_t>(c10::elementSize(type));
    at::Tensor flat = storage.narrow(0, 0, storage.numel() / item * item).view(type);
    check_bools(flat);
    if (ref.is_conjugate || ref.is_negative) flat = flat.clone();
    if (ref.is_conjugate) flat.conj_physical_();
    if (ref.is_negative) flat.neg_();
    made = flat;
    return made;
  }
  // Tensors of one storage share it, as in Python.
  at::Tensor storage_of(const std::string& name) {
    at::Tensor& made = storages_[name];
    if (made.defined()) return made;
    const std::string& bytes = from_.storages.at(name).bytes;
    made = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
    if (!bytes.empty()) std::memcpy(made.data_ptr(), bytes.data(), bytes.size());
    return made;
  }
  std::vector<Object> objects_of(const pickle::Values& values) {
    std::vector<Object> made;
    for (const pickle::Value& value : values) made.push_back(object_of(value));
    return made;
  }

  const pickle::Object& from_;
  std::map<std::string, at::Tensor> storages_;
  std::map<std::tuple<std::string, at::ScalarType, bool, bool>, at::Tensor> elements_;
};

}  // namespace

Object::Held Object::of_large_number(uint64_t number) {
  BigInt made{std::string(sizeof number + 1, '\0')};
  std::memcpy(made.bytes.data(), &number, sizeof number);
  return made;
}

const char* Object::type_name() const {
  static constexpr std::array kNames{"NoneType", "bool", "int",   "int",  "float", "complex", "str",
                                     "bytes",    "list", "tuple", "dict", "dtype", "Tensor"};
  static_assert(kNames.size() == std::variant_size_v<Held>);
  return kNames[held_.index()];
}

const std::vector<Object>* Object::items() const {
  if (const auto* list = get_if<List>()) return &list->items;
  const auto* tuple = get_if<Tuple>();
  return tuple == nullptr ? nullptr : &tuple->items;
}

const Object* Object::find(std::string_view key) const {
  const auto* dict = get_if<Dict>();
  if (dict == nullptr) return nullptr;
  for (const auto& [name, value] : dict->pairs) {
    const auto* text = name.get_if<std::string>();
    if (text != nullptr && *text == key) return &value;
  }
  return nullptr;
}

std::string dumps(const Object& object) { return Writing().finish(object); }

Object loads(std::string_view bytes) {
  // A pickle without repetition unfolds to less than this; a short one may repeat parts.
  pickle::ReadLimits limits;
  limits.nodes += bytes.size();
  limits.made += bytes.size();
  limits.text_bytes += bytes.size();
  limits.memo += bytes.size();
  const auto object = pickle::read_object(bytes, limits);
  if (!object) throw DistMismatchError("malformed object: " + object.error().text);
  return Reading(*object).finish();
}

}  // namespace cpprun::dist
