// FileTimers: the timers that workers set by torch's FileTimerClient, and whose are over. Pure:
// wall clock times come from outside, as clients write them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cpprun::agent {

// One message of a client. A later one of the same process and scope replaces it.
struct TimerRequest {
  int pid = 0;
  std::string scope;
  double expires_at = 0;  // seconds since 1970; negative: released
  int signal = 0;         // for the process when it is over; 0: none
};

class FileTimers {
 public:
  // More timers than limits::kFileTimers are not taken: false.
  bool take(const TimerRequest& request);
  // The timers that are over, by time, and all others of their processes are forgotten. Of each
  // process the first one with a signal counts; one without is only forgotten.
  std::vector<TimerRequest> expire(double now);
  std::optional<double> next() const;  // when a timer is over; nothing: there is none
  void clear() { timers_.clear(); }

 private:
  std::map<std::pair<int, std::string>, TimerRequest> timers_;
};

}  // namespace cpprun::agent
