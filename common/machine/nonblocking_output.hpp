// NonblockingOutput: our own stdout or stderr, written without ever blocking. Its open file
// description is shared with others (a shell), so it is never made non-blocking: pipes and
// terminals are opened anew for that, the rest is written to with care.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace cpprun {

class NonblockingOutput {
 public:
  // `fd` stays the caller's.
  explicit NonblockingOutput(int fd);
  ~NonblockingOutput();
  NonblockingOutput(const NonblockingOutput&) = delete;

  // As write(2); EAGAIN: whoever reads takes nothing now.
  ssize_t write_some(std::string_view text);
  // To be waited for after EAGAIN.
  int poll_fd() const { return own_ >= 0 ? own_ : fd_; }

 private:
  enum class Way { Plain, OwnDescription, Socket, SmallSteps };

  const int fd_;
  int own_ = -1;
  Way poster_ = Way::Plain;
};

}  // namespace cpprun
