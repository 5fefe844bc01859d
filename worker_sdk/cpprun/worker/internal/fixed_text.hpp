// Text of bounded length in memory that its owner gives. It allocates nothing and throws nothing,
// so signal handlers may build reports with it. What does not fit is left out. One thread.
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
  FixedText& put_hex(uint64_t number) noexcept;  // with 0x in front
  // As the inside of a JSON string, all of it ASCII: Python reads the file in the locale's
  // encoding. Bytes that are no UTF-8 become U+FFFD; after `limit` bytes of `text` comes "...".
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
