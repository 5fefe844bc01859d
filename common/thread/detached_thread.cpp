#include "common/thread/detached_thread.hpp"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "common/thread/blocked_signals.hpp"

namespace cpprun {

Status start_detached_thread(std::function<void()> run) {
  const BlockedSignals blocked;
  try {
    std::thread(std::move(run)).detach();
  } catch (const std::system_error& error) {
    return Error{ErrorKind::System, std::string("no thread can be started: ") + error.what()};
  }
  return {};
}

}  // namespace cpprun
