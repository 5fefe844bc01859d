// The parts of the zip format (PKWARE's APPNOTE 6.3) that tensor files use. Private.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace cpprun::archive::zip {

inline constexpr uint32_t kLocal = 0x04034b50;
inline constexpr uint32_t kCentral = 0x02014b50;
inline constexpr uint32_t kEnd = 0x06054b50;
inline constexpr uint32_t kEnd64 = 0x06064b50;
inline constexpr uint32_t kLocator64 = 0x07064b50;

// Fixed sizes of the headers, without names and extra fields.
inline constexpr size_t kLocalBytes = 30;
inline constexpr size_t kCentralBytes = 46;
inline constexpr size_t kEndBytes = 22;
inline constexpr size_t kEnd64Bytes = 56;
inline constexpr size_t kLocator64Bytes = 20;
inline constexpr size_t kExtraBytes = 4;  // id and size of an extra field
inline constexpr size_t kCommentMax = 65535;

inline constexpr uint32_t kIn64 = 0xFFFFFFFF;  // marker: the value is in the zip64 field
inline constexpr uint16_t kCountIn64 = 0xFFFF;
inline constexpr uint16_t kZip64Field = 1;
inline constexpr uint16_t kPaddingField = 0x4246;  // "FB", torch's id
inline constexpr uint16_t kVersion = 20, kVersion64 = 45;
inline constexpr uint16_t kUtf8Names = 1 << 11;
inline constexpr uint16_t kEncrypted = 1;
inline constexpr uint16_t kStored = 0;
inline constexpr uint16_t kDate = 1 << 5 | 1;  // 1980-01-01, so that equal states give equal bytes

// Little endian, like the machines that cpprun supports.
template <class T>
T get(std::string_view bytes, size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Appends integers of the given widths.
class Bytes {
 public:
  Bytes& u16(uint16_t value) { return raw(value); }
  Bytes& u32(uint32_t value) { return raw(value); }
  Bytes& u64(uint64_t value) { return raw(value); }
  Bytes& text(std::string_view value) {
    out_ += value;
    return *this;
  }
  Bytes& zeros(size_t count) {
    out_.append(count, '\0');
    return *this;
  }
  size_t size() const { return out_.size(); }
  std::string take() { return std::move(out_); }

 private:
  template <class T>
  Bytes& raw(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
    return *this;
  }
  std::string out_;
};

}  // namespace cpprun::archive::zip
