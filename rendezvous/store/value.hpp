// A value of the store: its own bytes or, if large, shared memory that is constant from then on.
// Large values are shared to avoid copies: a SET may keep the buffer in which it was received, and
// a connection's output may hold the value until the peer has read it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace cpprun {

// `owner` keeps `bytes` alive. Shared by the store and every connection that still has to send the
// value.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

class Value {
 public:
  // From this size on a value is shared instead of copied into each reply. This also bounds the
  // memory of the reply to a MULTI_GET that names one key many times.
  static constexpr size_t kSharedFrom = 8 * 1024;

  Value() = default;
  explicit Value(std::string_view bytes) { assign(bytes); }

  std::string_view view() const { return shared_.owner ? shared_.bytes : std::string_view(own_); }
  // Null unless the value is large.
  const SharedBytes* shared() const { return shared_.owner ? &shared_ : nullptr; }

  void assign(std::string_view bytes);
  // Takes the bytes without a copy.
  void adopt(SharedBytes bytes);
  void append(std::string_view bytes);

 private:
  std::string own_;
  SharedBytes shared_;
  // The string that shared_ points into, if append() may extend it.
  std::shared_ptr<std::string> growing_;
};

}  // namespace cpprun
