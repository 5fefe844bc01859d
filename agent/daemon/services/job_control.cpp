#include "agent/daemon/services/job_control.hpp"

#include <csignal>

namespace cpprun {

void JobControl::start() {
  struct sigaction current {};
  ::sigaction(SIGTSTP, nullptr, &current);
  if (current.sa_handler != SIG_IGN) wait();
}

void JobControl::wait() {
  boost::system::error_code ignored;
  signal_.add(SIGTSTP, ignored);
  signal_.async_wait([this](const auto& error, int) {
    if (error) return;
    boost::system::error_code also_ignored;
    signal_.remove(SIGTSTP, also_ignored);
    // The default effect instead of SIGSTOP: where no shell could continue this process, the kernel
    // does not stop it.
    suspend_during_([] { ::raise(SIGTSTP); });
    wait();
  });
}

}  // namespace cpprun
