// ByteReader: consumes the parts of a pickle and keeps the first error. After an error, everything
// it returns is zero or empty. Private.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "snapshot_files/pickle/value.hpp"

namespace cpprun::pickle {

// The pickle codes that torch.save writes and its safe loader accepts, and the equivalents of
// protocols 3 to 5. Sets are known only to be refused by name; only `.metadata` has objects.
enum Code : uint8_t {
  kProto = 0x80,
  kFrame = 0x95,
  kStop = '.',
  kMark = '(',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kShortBinString = 'U',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinBytes8 = 0x8e,
  kByteArray8 = 0x96,
  kEmptySet = 0x8f,
  kFrozenSet = 0x91,
  kEmptyTuple = ')',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kTuple = 't',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kNewObj = 0x81,
  kBuild = 'b',
  kBinPersId = 'Q',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  void fail(const std::string& why) {
    if (why_.empty()) why_ = why;
  }
  bool has_failed() const { return !why_.empty(); }
  const std::string& why() const { return why_; }
  size_t at() const { return at_; }

  std::string_view take_bytes(size_t size) {
    if (bytes_.size() - at_ < size) {
      fail("is cut short");
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  template <class T>
  T take() {
    T value{};
    const std::string_view taken = take_bytes(sizeof value);
    if (!taken.empty()) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  std::string take_line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) {
      fail("is cut short");
      return {};
    }
    std::string line(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return line;
  }
  double take_double() {
    return std::bit_cast<double>(__builtin_bswap64(take<uint64_t>()));  // big endian
  }
  // An integer in two's complement, little endian; BigInt only if int64_t does not hold it.
  Value take_long(size_t size) {
    if (size > INT32_MAX) fail("has an integer of negative size");
    std::string_view taken = take_bytes(size);
    const auto sign_of = [](std::string_view bytes) { return (bytes.back() & 0x80) != 0; };
    const auto is_padded = [&] {
      const std::string_view shorter = taken.substr(0, taken.size() - 1);
      return taken.back() == (sign_of(shorter) ? '\xff' : '\0');
    };
    while (taken.size() > sizeof(int64_t) && is_padded()) taken.remove_suffix(1);
    if (taken.empty()) return int64_t{0};
    if (taken.size() > sizeof(int64_t)) return BigInt{std::string(taken)};
    uint64_t value = sign_of(taken) ? ~uint64_t{0} : 0;
    for (size_t i = taken.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return static_cast<int64_t>(value);
  }

 private:
  const std::string_view bytes_;
  size_t at_ = 0;
  std::string why_;
};

}  // namespace cpprun::pickle
