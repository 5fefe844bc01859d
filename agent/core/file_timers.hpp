// FileTimers: the pending timers of torch's FileTimerClient in the workers. Pure: the caller passes
// wall clock times, in the client's unit.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cpprun::agent {

// One request of a client. It replaces an earlier one of the same process and scope.
struct TimerRequest {
  int pid = 0;
  std::string scope;
  double expires_at = 0;  // seconds since 1970; negative: the client released the timer
  int signal = 0;         // sent to the process at expires_at; 0: none
};

class FileTimers {
 public:
  // False: there are limits::kFileTimers timers already.
  bool take(const TimerRequest& request);
  // Removes the expired timers and returns, in order of time, the first one with a signal of each
  // process. Removes the other timers of those processes as well. A timer without a signal expires
  // silently.
  std::vector<TimerRequest> expire(double now);
  std::optional<double> next() const;  // when the next timer expires; unset: there is none
  void clear() { timers_.clear(); }

 private:
  std::map<std::pair<int, std::string>, TimerRequest> timers_;
};

}  // namespace cpprun::agent
