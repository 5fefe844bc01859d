#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "common/check.hpp"
#include "snapshot_files/pickle/legacy_format.hpp"
#include "snapshot_files/pickle/nodes.hpp"

namespace cpprun::pickle {
namespace {

class Writer {
 public:
  std::string finish(const Value& value) {
    put(value);
    out_ += '.';
    return std::move(out_);
  }
  Writer() { out_ = "\x80\x02"; }
  // Tensors get their bytes from `storages`.
  explicit Writer(const std::map<std::string, EmbeddedStorage>& storages) : storages_(&storages) {
    out_ = "\x80\x04";
  }

 private:
  void put(const Value& value) {
    std::visit([this](const auto& held) { put_held(held); }, value.held());
  }

  void put_held(const None&) { out_ += 'N'; }
  void put_held(bool value) { out_ += value ? '\x88' : '\x89'; }
  void put_held(int64_t value) {
    if (value >= 0 && value < 256) {
      out_ += 'K';
      raw(static_cast<uint8_t>(value));
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      out_ += 'J';
      raw(static_cast<int32_t>(value));
    } else {
      out_ += "\x8a\x08";
      raw(value);
    }
  }
  void put_held(double value) {
    out_ += 'G';
    raw(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
  }
  void put_held(const BigInt& value) {
    if (value.bytes.size() <= UINT8_MAX) {
      out_ += '\x8a';
      raw(static_cast<uint8_t>(value.bytes.size()));
    } else {
      CPPRUN_CHECK(value.bytes.size() <= INT32_MAX);
      out_ += '\x8b';
      raw(static_cast<uint32_t>(value.bytes.size()));
    }
    out_ += value.bytes;
  }
  void put_held(const std::string& text) {
    if (text.size() > UINT32_MAX) {
      CPPRUN_CHECK(storages_ != nullptr);
      out_ += '\x8d';
      raw(uint64_t{text.size()});
    } else {
      out_ += 'X';
      raw(static_cast<uint32_t>(text.size()));
    }
    out_ += text;
  }
  void put_held(const Bytes& value) {
    if (storages_ != nullptr) return put_bytes(value.bytes);
    std::string latin1;
    for (const char c : value.bytes) {
      const auto byte = static_cast<uint8_t>(c);
      if (byte >= 0x80) latin1 += static_cast<char>(0xC0 | byte >> 6);
      latin1 += static_cast<char>(byte < 0x80 ? byte : 0x80 | (byte & 0x3F));
    }
    global("_codecs", "encode");
    out_ += '(';
    put_held(latin1);
    put_held(std::string("latin1"));
    out_ += "tR";
  }
  // Protocol 3 and newer.
  void put_bytes(std::string_view bytes) {
    begin_bytes(bytes.size());
    out_ += bytes;
  }
  void begin_bytes(size_t size) {
    if (size > UINT32_MAX) {
      out_ += '\x8e';
      raw(uint64_t{size});
    } else {
      out_ += 'B';
      raw(static_cast<uint32_t>(size));
    }
  }
  void put_held(const List& list) {
    out_ += "](";
    for (const Value& item : list.items) put(item);
    out_ += 'e';
  }
  void put_held(const Tuple& tuple) {
    out_ += '(';
    for (const Value& item : tuple.items) put(item);
    out_ += 't';
  }
  void put_held(const Dict& dict) {
    out_ += "}(";
    for (const auto& [key, value] : dict.pairs) {
      put(key);
      put(value);
    }
    out_ += 'u';
  }
  void put_held(const Dtype& dtype) { global("torch", dtype.name); }
  void put_held(const Complex& value) {
    // Python maps the old name of the module for protocol 2 only.
    global(storages_ == nullptr ? "__builtin__" : "builtins", "complex");
    out_ += '(';
    put_held(value.real);
    put_held(value.imaginary);
    out_ += "tR";
  }
  void put_held(const TensorRef& tensor) {
    const DtypeInfo* dtype = find_dtype(tensor.dtype);
    CPPRUN_CHECK(dtype != nullptr);
    const bool is_typed = !dtype->storage.empty();
    global("torch._utils", is_typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_ += '(';
    storages_ == nullptr ? put_reference(tensor, "cpu") : put_storage(tensor);
    put_held(tensor.offset);
    numbers(tensor.sizes);
    numbers(tensor.strides);
    put_held(tensor.requires_grad);
    global("collections", "OrderedDict");
    out_ += ")R";
    if (!is_typed) global("torch", tensor.dtype);
    if (tensor.is_conjugate || tensor.is_negative) metadata(tensor);
    out_ += "tR";
  }

  // As the persistent id of a storage that is stored elsewhere.
  void put_reference(const TensorRef& tensor, const std::string& location) {
    const DtypeInfo* dtype = find_dtype(tensor.dtype);
    const bool is_typed = !dtype->storage.empty();
    out_ += '(';
    put_held(std::string("storage"));
    is_typed ? global("torch", dtype->storage) : global("torch.storage", "UntypedStorage");
    put_held(tensor.storage);
    put_held(location);
    put_held(elements_of(tensor));
    // The legacy format has the metadata of a view.
    if (is_legacy_) put_held(None{});
    out_ += "tQ";
  }
  static int64_t elements_of(const TensorRef& tensor) {
    const DtypeInfo* dtype = find_dtype(tensor.dtype);
    return dtype->storage.empty() ? tensor.storage_numel * dtype->bytes : tensor.storage_numel;
  }
  // As a call with the bytes of a file in the legacy format (embedded.cpp).
  void put_storage(const TensorRef& tensor) {
    const EmbeddedStorage& storage = storages_->at(tensor.storage);
    const DtypeInfo* dtype = find_dtype(tensor.dtype);
    const auto size = static_cast<size_t>(tensor.storage_numel * dtype->bytes);
    CPPRUN_CHECK(size <= storage.bytes.size());
    const std::string head = Writer().legacy_head(tensor, storage.location);
    global("torch.storage", "_load_from_bytes");
    out_ += '(';
    begin_bytes(head.size() + size);
    out_ += head;
    out_.append(storage.bytes, 0, size);  // without a last element that is not whole
    out_ += "tR";
  }
  // All of a legacy file but the elements. Requires a new writer.
  std::string legacy_head(const TensorRef& tensor, const std::string& location) {
    is_legacy_ = true;
    const std::string begin = std::exchange(out_, {});
    const auto add = [&](auto&& put_one) {
      out_ += begin;
      put_one();
      out_ += '.';
    };
    add([&] { put_held(BigInt{std::string(legacy::kMagic)}); });
    add([&] { put_held(legacy::kVersion); });
    add([&] { put_held(Dict{{{"protocol_version", legacy::kVersion}, {"little_endian", true}}}); });
    add([&] { put_reference(tensor, location); });
    add([&] { put_held(List{{Value(tensor.storage)}}); });
    raw(elements_of(tensor));
    return std::move(out_);
  }

  void metadata(const TensorRef& tensor) {
    Dict dict;
    if (tensor.is_conjugate) dict.pairs.emplace_back("conj", true);
    if (tensor.is_negative) dict.pairs.emplace_back("neg", true);
    put_held(dict);
  }
  void numbers(const std::vector<int64_t>& values) {
    out_ += '(';
    for (const int64_t value : values) put_held(value);
    out_ += 't';
  }
  void global(std::string_view module, std::string_view name) {
    out_.append("c").append(module).append("\n").append(name).append("\n");
  }
  template <class T>
  void raw(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }

  std::string out_;
  const std::map<std::string, EmbeddedStorage>* storages_ = nullptr;
  bool is_legacy_ = false;
};

}  // namespace

std::string write(const Value& value) { return Writer().finish(value); }
std::string write_object(const Object& object) {
  return Writer(object.storages).finish(object.value);
}

}  // namespace cpprun::pickle
