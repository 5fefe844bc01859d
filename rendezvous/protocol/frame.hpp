// Frames of the control protocol. A connection opens with the four bytes "CPRN"; then, both ways,
// frames:
//
//   frame := length (u32, little-endian, 1 .. limits::kControlFrameBytes) body (length bytes)
//
// The length is checked before anything is waited for or allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/result.hpp"

namespace cpprun::control {

inline constexpr uint8_t kMagic[4] = {'C', 'P', 'R', 'N'};

// Appends length and body. Error (Protocol): the body is larger than a frame may be.
Status try_append_frame(std::vector<uint8_t>& out, std::span<const uint8_t> body);
// The same for bodies that nobody else has made any part of.
void append_frame(std::vector<uint8_t>& out, std::span<const uint8_t> body);

// What stands at the front of a receive buffer.
struct FrameView {
  enum class State { NeedMore, Whole, Broken } state = State::NeedMore;
  std::span<const uint8_t> body;  // Whole only; points into the buffer
  size_t consumed = 0;            // Whole only; length field included
};
FrameView next_frame(std::span<const uint8_t> buffer);

}  // namespace cpprun::control
