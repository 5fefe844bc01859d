#include "rendezvous/protocol/frame.hpp"

#include "common/check.hpp"
#include "common/limits/server.hpp"

namespace cpprun::control {

Status try_append_frame(std::vector<uint8_t>& out, std::span<const uint8_t> body) {
  CPPRUN_CHECK(!body.empty());
  if (body.size() > limits::kControlFrameBytes) {
    return Error{ErrorKind::Protocol, "a message of " + std::to_string(body.size()) +
                                          " bytes does not fit into a frame of at most " +
                                          std::to_string(limits::kControlFrameBytes)};
  }
  auto length = static_cast<uint32_t>(body.size());
  for (int shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<uint8_t>(length >> shift));
  }
  out.insert(out.end(), body.begin(), body.end());
  return {};
}

void append_frame(std::vector<uint8_t>& out, std::span<const uint8_t> body) {
  CPPRUN_CHECK(try_append_frame(out, body).ok());
}

FrameView next_frame(std::span<const uint8_t> buffer) {
  FrameView view;
  if (buffer.size() < 4) return view;
  uint32_t length = 0;
  for (size_t i = 0; i < 4; ++i) length |= static_cast<uint32_t>(buffer[i]) << (8 * i);
  if (length == 0 || length > limits::kControlFrameBytes) {
    view.state = FrameView::State::Broken;
    return view;
  }
  if (buffer.size() < 4 + length) return view;
  view.state = FrameView::State::Whole;
  view.body = buffer.subspan(4, length);
  view.consumed = 4 + length;
  return view;
}

}  // namespace cpprun::control
