// MergedOutput: writes the lines of all hosts to our stdout or stderr. Keeps what the reader does
// not take; the caller stops reading from the hosts while is_full(). After a write error, such as a
// closed pipe, all text is dropped.
//
// Not thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "common/machine/nonblocking_output.hpp"

namespace cpprun::ssh {

class MergedOutput {
 public:
  explicit MergedOutput(int fd) : output_(fd) {}

  void add(std::string_view text);
  void flush();  // writes what the reader takes now
  bool is_full() const;
  bool is_waiting() const { return !pending_.empty(); }
  int poll_fd() const { return output_.poll_fd(); }

 private:
  NonblockingOutput output_;
  std::string pending_;
  bool is_broken_ = false;
};

}  // namespace cpprun::ssh
