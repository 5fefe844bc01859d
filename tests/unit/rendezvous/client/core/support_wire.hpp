// Shared by the tests of the cores: messages that were encoded and decoded.
#pragma once

#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun::test {

inline std::vector<uint8_t> to_frame(const std::vector<uint8_t>& body) {
  std::vector<uint8_t> bytes;
  control::append_frame(bytes, body);
  return bytes;
}

// The same message after encoding, framing and decoding.
inline control::AgentMessage over_the_wire(const control::AgentMessage& message) {
  std::vector<uint8_t> bytes = to_frame(control::encode(message));
  control::FrameView frame = control::next_frame(bytes);
  EXPECT_EQ(frame.consumed, bytes.size());
  return *control::decode_agent(frame.body);
}
inline control::CoordinatorMessage over_the_wire(const control::CoordinatorMessage& message) {
  std::vector<uint8_t> bytes = to_frame(control::encode(message));
  control::FrameView frame = control::next_frame(bytes);
  EXPECT_EQ(frame.consumed, bytes.size());
  return *control::decode_coordinator(frame.body);
}

// The newest T in a list of messages, or nothing.
template <class T, class Variant>
const T* newest(const std::vector<Variant>& messages) {
  for (auto it = messages.rbegin(); it != messages.rend(); ++it) {
    if (const T* found = std::get_if<T>(&*it)) return found;
  }
  return nullptr;
}

template <class T, class Variant>
int64_t count_of(const std::vector<Variant>& messages) {
  int64_t n = 0;
  for (const Variant& message : messages) n += std::holds_alternative<T>(message) ? 1 : 0;
  return n;
}

}  // namespace cpprun::test
