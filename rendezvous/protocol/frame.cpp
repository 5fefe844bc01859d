#include "rendezvous/protocol/frame.hpp"

#include "common/limits/server.hpp"

namespace cpprun::control {

std::optional<size_t> frame_length(std::string_view four, size_t most) {
  CPPRUN_CHECK(four.size() == 4);
  size_t length = 0;
  for (size_t i = 0; i < 4; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>(four[i])) << (8 * i);
  }
  return length == 0 || length > most ? std::nullopt : std::optional(length);
}

Status try_append_frame(std::vector<uint8_t>& out, std::span<const uint8_t> body) {
  if (body.size() > limits::kControlFrameBytes) {
    return Error{ErrorKind::Protocol, "a message of " + std::to_string(body.size()) +
                                          " bytes does not fit into a frame of at most " +
                                          std::to_string(limits::kControlFrameBytes)};
  }
  append_frame(out, body);
  return {};
}

FrameView next_frame(std::span<const uint8_t> buffer) {
  FrameView view;
  if (buffer.size() < 4) return view;
  const auto length =
      frame_length({reinterpret_cast<const char*>(buffer.data()), 4}, limits::kControlFrameBytes);
  if (!length) {
    view.state = FrameView::State::Broken;
    return view;
  }
  if (buffer.size() < 4 + *length) return view;
  view.state = FrameView::State::Whole;
  view.body = buffer.subspan(4, *length);
  view.consumed = 4 + *length;
  return view;
}

}  // namespace cpprun::control
