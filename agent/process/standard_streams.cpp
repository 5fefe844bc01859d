#include "agent/process/standard_streams.hpp"

#include <fcntl.h>

#include "common/check.hpp"

namespace cpprun {

void fill_standard_streams() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) CPPRUN_CHECK(::open("/dev/null", O_RDWR) == fd);
  }
}

}  // namespace cpprun
