#include "cpprun/snapshot/save/saver.hpp"

#include <signal.h>

#include <exception>

#include "common/check.hpp"

namespace cpprun::snapshot {

// If an exception ends the training, the save does not wait for other ranks.
Saver::~Saver() {
  if (std::uncaught_exceptions() > 0) gives_up_.store(true);
  wait();
}

void Saver::start(Job job) {
  CPPRUN_CHECK(!is_busy());
  wait();
  is_busy_.store(true);
  // The new thread must not run signal handlers of the program.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, job = std::move(job)] {
    ::pthread_setname_np(::pthread_self(), "cpprun-saver");  // as profilers and `top -H` show it
    is_well_.store(job(gives_up_).ok());
    is_busy_.store(false);
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Saver::wait() {
  if (thread_.joinable()) thread_.join();
  return is_well_.load();
}

}  // namespace cpprun::snapshot
