// A value of the store: its own bytes, or, if large, shared memory that nobody writes to any more.
//
// Large values are shared so that neither storing nor sending them copies them: a SET may keep the
// buffer it was received in, and a connection's output may hold the value until the peer has read
// it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace cpprun {

// Keeps `bytes` alive. Shared by the store and by every connection that still has to send the
// value.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

class Value {
 public:
  // From this size on a value is shared instead of copied into each reply. It also bounds what one
  // short MULTI_GET that names the same key again and again can make us allocate.
  static constexpr size_t kSharedFrom = 8 * 1024;

  Value() = default;
  explicit Value(std::string_view bytes) { assign(bytes); }

  std::string_view view() const { return shared_.owner ? shared_.bytes : std::string_view(own_); }
  // Null unless the value is large.
  const SharedBytes* shared() const { return shared_.owner ? &shared_ : nullptr; }

  void assign(std::string_view bytes);
  // Takes memory that somebody received; no copy.
  void adopt(SharedBytes bytes);
  void append(std::string_view bytes);

 private:
  std::string own_;
  SharedBytes shared_;
  // What shared_ points into, if it is ours and may still be appended to.
  std::shared_ptr<std::string> growing_;
};

}  // namespace cpprun
