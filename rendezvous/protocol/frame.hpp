// Framing of the control protocol. A connection opens with the four bytes "CPRN"; then frames
// follow in both directions:
//
//   frame := length (u32, little-endian, 1 .. limits::kControlFrameBytes) body (length bytes)
// The receiver checks the length before it waits for bytes or allocates.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/result.hpp"

namespace cpprun::control {

inline constexpr uint8_t kMagic[4] = {'C', 'P', 'R', 'N'};

// Appends length and body. Error (Protocol): the body is too long for a frame.
Status try_append_frame(std::vector<uint8_t>& out, std::span<const uint8_t> body);
// The same for bodies without foreign parts, whose length is known to fit.
void append_frame(std::vector<uint8_t>& out, std::span<const uint8_t> body);

// The front of a receive buffer.
struct FrameView {
  enum class State { NeedMore, Whole, Broken } state = State::NeedMore;
  std::span<const uint8_t> body;  // Whole only; a view of the buffer
  size_t consumed = 0;            // Whole only; length field included
};
FrameView next_frame(std::span<const uint8_t> buffer);

}  // namespace cpprun::control
