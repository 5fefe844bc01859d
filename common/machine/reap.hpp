// Reaping children.
#pragma once

#include <errno.h>
#include <sys/types.h>
#include <sys/wait.h>

namespace cpprun {

// The kind of id that waitid() takes for a pidfd.
constexpr auto kPidfdType = static_cast<idtype_t>(P_PIDFD);

// Waits for the end of a child and reaps it. Its status, as waitpid() has it.
inline int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

}  // namespace cpprun
