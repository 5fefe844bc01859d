// NonblockingOutput: writes to our stdout or stderr without blocking. Other processes (the shell)
// share the open file description, so O_NONBLOCK must not be set on it. Pipes and terminals are
// opened again as a description of our own; sockets take MSG_DONTWAIT; regular files and block
// devices are written as they are.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace cpprun {

class NonblockingOutput {
 public:
  // The caller keeps `fd`, which must outlive this object.
  explicit NonblockingOutput(int fd);
  ~NonblockingOutput();
  NonblockingOutput(const NonblockingOutput&) = delete;

  // As write(2); EAGAIN if the reader takes nothing now.
  ssize_t write_some(std::string_view text);
  // The descriptor to poll for POLLOUT after EAGAIN.
  int poll_fd() const { return own_fd_ >= 0 ? own_fd_ : fd_; }

 private:
  enum class Method { Plain, Reopened, Socket, SmallSteps };

  const int fd_;
  int own_fd_ = -1;
  Method method_ = Method::Plain;
};

}  // namespace cpprun
