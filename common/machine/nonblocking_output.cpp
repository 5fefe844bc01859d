#include "common/machine/nonblocking_output.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace cpprun {

NonblockingOutput::NonblockingOutput(int fd) : fd_(fd) {
  struct stat info {};
  if (::fstat(fd, &info) < 0 || S_ISREG(info.st_mode) || S_ISBLK(info.st_mode)) return;
  if (S_ISSOCK(info.st_mode)) {
    method_ = Method::Socket;
    return;
  }
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  own_fd_.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  method_ = own_fd_.is_open() ? Method::Reopened : Method::SmallSteps;
}

ssize_t NonblockingOutput::write_some(std::string_view text) {
  switch (method_) {
    case Method::Socket: return ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Method::Reopened: return ::write(own_fd_.get(), text.data(), text.size());
    case Method::SmallSteps: {
      // A pipe that polls writable takes PIPE_BUF bytes without blocking.
      pollfd ready{fd_, POLLOUT, 0};
      if (::poll(&ready, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
      }
      return ::write(fd_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    }
    case Method::Plain: break;
  }
  return ::write(fd_, text.data(), text.size());
}

}  // namespace cpprun
