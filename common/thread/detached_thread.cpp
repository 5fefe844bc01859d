#include "common/thread/detached_thread.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "common/thread/blocked_signals.hpp"
#include "common/thread/process_limits.hpp"

namespace cpprun {
namespace {

// Without the log, which uses this module.
void report(const char* why) {
  std::fprintf(stderr, "cpprun: ERROR: a background thread has failed: %s\n", why);
}

void run_guarded(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) {
    report(error.what());
  } catch (...) {
    report("an unknown exception");
  }
}

}  // namespace

Status start_detached_thread(std::function<void()> run) {
  const BlockedSignals blocked;
  try {
    std::thread([run = std::move(run)] { run_guarded(run); }).detach();
  } catch (const std::system_error& error) {
    return Error{ErrorKind::System, std::string("no thread can be started: ") + error.what() +
                                        "; " + process_limits_text()};
  }
  return {};
}

}  // namespace cpprun
