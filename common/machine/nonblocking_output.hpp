// NonblockingOutput: writes to our stdout or stderr without blocking. Other processes (the shell)
// share the open file description, so O_NONBLOCK must not be set on it. Pipes and terminals are
// opened again as a description of our own; sockets take MSG_DONTWAIT; regular files and block
// devices are written as they are.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "common/machine/unique_fd.hpp"

namespace cpprun {

class NonblockingOutput {
 public:
  // The caller keeps `fd`, which must outlive this object.
  explicit NonblockingOutput(int fd);

  // As write(2); EAGAIN if the reader takes nothing now.
  ssize_t write_some(std::string_view text);
  // A regular file or block device: write_some() waits for its file system.
  bool may_block() const { return method_ == Method::Plain; }
  // The descriptor to poll for POLLOUT after EAGAIN.
  int poll_fd() const { return own_fd_.is_open() ? own_fd_.get() : fd_; }

 private:
  enum class Method { Plain, Reopened, Socket, SmallSteps };

  const int fd_;
  UniqueFd own_fd_;
  Method method_ = Method::Plain;
};

}  // namespace cpprun
