// LogRateLimiter: limits the log lines that peers can cause. A peer that retries every second is
// worth a line a minute, and one that causes a new text each time must not fill the log. No clock.
// Thread: its owner's.
#pragma once

#include <map>
#include <string>

#include "common/limits/server.hpp"
#include "common/time.hpp"

namespace cpprun {

class LogRateLimiter {
 public:
  // True if `text` may be logged now; then it counts as logged.
  bool may_log(Instant now, const std::string& text) {
    std::erase_if(logged_,
                  [&](const auto& e) { return now - e.second >= limits::kRepeatLogInterval; });
    return logged_.size() < limits::kLogTextsKept && logged_.try_emplace(text, now).second;
  }

  // Of lines that may repeat, at most limits::kCoordinatorLogLines a minute.
  enum class Line { Logged, LastOne, LeftOut };
  Line next_line(Instant now) {
    if (lines_ == 0 || now - begun_ >= limits::kRepeatLogInterval) {
      begun_ = now;
      lines_ = 0;
    }
    if (lines_ >= limits::kCoordinatorLogLines) return Line::LeftOut;
    return ++lines_ == limits::kCoordinatorLogLines ? Line::LastOne : Line::Logged;
  }

 private:
  std::map<std::string, Instant> logged_;  // time of the last log line
  Instant begun_;                          // of the minute in which lines_ are counted
  size_t lines_ = 0;
};

}  // namespace cpprun
