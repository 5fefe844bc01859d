#include "cpprun/worker/internal/fixed_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace cpprun::worker {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;
constexpr uint32_t kSurrogatesBegin = 0xD800;
constexpr uint32_t kSurrogatesEnd = 0xE000;
constexpr uint32_t kBeyondUnicode = 0x110000;

struct Decoded {
  uint32_t code_point = kReplacement;
  size_t size = 1;
};

// Number of bytes that follow `first` in a UTF-8 sequence; -1: no sequence begins with it.
int followers(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first < 0xE0) return 1;
  if (first >= 0xE0 && first < 0xF0) return 2;
  if (first >= 0xF0 && first < 0xF5) return 3;
  return -1;
}

bool is_allowed(uint32_t code_point, int count) {
  constexpr uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};  // overlong below these
  if (code_point < kSmallest[count] || code_point >= kBeyondUnicode) return false;
  return code_point < kSurrogatesBegin || code_point >= kSurrogatesEnd;
}

// Decodes the first character of `text`, which is not empty.
Decoded decode(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const int count = followers(first);
  if (count == 0) return {first, 1};
  if (count < 0 || text.size() <= static_cast<size_t>(count)) return {};
  uint32_t code_point = first & (0x3Fu >> count);
  for (int i = 1; i <= count; ++i) {
    const auto next = static_cast<unsigned char>(text[static_cast<size_t>(i)]);
    if ((next & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (next & 0x3F);
  }
  if (!is_allowed(code_point, count)) return {};
  return {code_point, static_cast<size_t>(count) + 1};
}

}  // namespace

FixedText& FixedText::put(std::string_view text) noexcept {
  const size_t count = std::min(text.size(), size_ - used_);
  if (count > 0) std::memcpy(memory_ + used_, text.data(), count);
  used_ += count;
  return *this;
}

FixedText& FixedText::put_number(uint64_t number) noexcept {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return put({digits, static_cast<size_t>(end - digits)});
}

FixedText& FixedText::put_hex(uint64_t number) noexcept {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
  return put("0x").put({digits, static_cast<size_t>(end - digits)});
}

FixedText& FixedText::put_json(std::string_view text, size_t limit) noexcept {
  const bool is_cut = text.size() > limit;
  if (is_cut) text = text.substr(0, limit);
  while (!text.empty()) {
    const Decoded next = decode(text);
    put_escaped(next.code_point);
    text.remove_prefix(next.size);
  }
  return is_cut ? put("...") : *this;
}

void FixedText::put_escaped(uint32_t code_point) noexcept {
  if (code_point == '\n') {
    put("\\n");
  } else if (code_point == '"' || code_point == '\\') {
    const char pair[] = {'\\', static_cast<char>(code_point)};
    put({pair, 2});
  } else if (code_point >= ' ' && code_point < 0x7F) {
    const char plain = static_cast<char>(code_point);
    put({&plain, 1});
  } else if (code_point < 0x10000) {
    put_u(code_point);
  } else {
    put_u(0xD800 + ((code_point - 0x10000) >> 10));
    put_u(0xDC00 + ((code_point - 0x10000) & 0x3FF));
  }
}

void FixedText::put_u(uint32_t unit) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  char text[] = {'\\', 'u', '0', '0', '0', '0'};
  for (int i = 5; i > 1; --i, unit >>= 4) text[i] = kDigits[unit & 0xF];
  put({text, sizeof text});
}

}  // namespace cpprun::worker
