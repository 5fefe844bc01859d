// FixedText: builds text in memory of fixed size that the caller owns. Neither allocates nor
// throws, so signal handlers may use it. Drops what does not fit. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cpprun::worker {

class FixedText {
 public:
  FixedText(char* memory, size_t size) noexcept : memory_(memory), size_(size) {}

  FixedText& put(std::string_view text) noexcept;
  FixedText& put_number(uint64_t number) noexcept;
  FixedText& put_hex(uint64_t number) noexcept;  // with a leading 0x
  // Appends `text` as the inside of a JSON string. Pure ASCII, because Python reads the file in the
  // locale's encoding. Invalid UTF-8 becomes U+FFFD. Only the first `limit` bytes of `text` are
  // used, followed by "..." if there are more.
  FixedText& put_json(std::string_view text, size_t limit) noexcept;

  std::string_view view() const noexcept { return {memory_, used_}; }

 private:
  void put_escaped(uint32_t code_point) noexcept;
  void put_u(uint32_t unit) noexcept;

  char* memory_;
  size_t size_;
  size_t used_ = 0;
};

}  // namespace cpprun::worker
