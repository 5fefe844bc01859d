#include "agent/daemon/loop_poster.hpp"

#include <signal.h>

#include <system_error>
#include <thread>

namespace cpprun {

Status start_detached_thread(std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    std::thread(std::move(run)).detach();
  } catch (const std::system_error& error) {
    status = Error{ErrorKind::System, std::string("no thread can be started: ") + error.what()};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace cpprun
