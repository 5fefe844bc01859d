// Framing of the control protocol and of the admin socket:
//
//   frame := length (u32, little-endian, at least 1) body (length bytes)
// The receiver checks the length before it waits for bytes or allocates. A control connection opens
// with the four bytes "CPRN"; its frames are at most limits::kControlFrameBytes long.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/check.hpp"
#include "common/result.hpp"

namespace cpprun::control {

inline constexpr uint8_t kMagic[4] = {'C', 'P', 'R', 'N'};

// The length that these four bytes encode; empty if it is 0 or above `most`.
std::optional<size_t> frame_length(std::string_view four, size_t most);

// Appends length and body to a string or a vector of bytes.
template <class Bytes>
void append_frame(Bytes& out, const auto& body) {
  CPPRUN_CHECK(!body.empty() && body.size() <= UINT32_MAX);
  for (int shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<typename Bytes::value_type>(body.size() >> shift));
  }
  out.insert(out.end(), body.begin(), body.end());
}
// Error (Protocol): the body is too long for a frame of the control protocol.
Status try_append_frame(std::vector<uint8_t>& out, std::span<const uint8_t> body);

// The front of a receive buffer.
struct FrameView {
  enum class State { NeedMore, Whole, Broken } state = State::NeedMore;
  std::span<const uint8_t> body;  // Whole only; a view of the buffer
  size_t consumed = 0;            // Whole only; length field included
};
FrameView next_frame(std::span<const uint8_t> buffer);

}  // namespace cpprun::control
