#include "common/machine/end_signals.hpp"

#include <errno.h>
#include <sys/signalfd.h>

#include <csignal>

namespace cpprun {

Result<UniqueFd> open_end_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.is_open()) return system_error("no descriptor for signals", errno);
  return fd;
}

}  // namespace cpprun
