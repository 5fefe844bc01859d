// Log rate limiter: which texts may be said again. A peer that knocks every second is worth a line
// a minute, and one that knocks with other words each time must not fill the log.
//
// Thinks; no clock. Thread: its owner's.
#pragma once

#include <map>
#include <string>

#include "common/limits/server.hpp"
#include "common/time.hpp"

namespace cpprun {

class LogRateLimiter {
 public:
  // May it be said now? Then it counts as said.
  bool may_log(Instant now, const std::string& text) {
    std::erase_if(said_,
                  [&](const auto& e) { return now - e.second >= limits::kRepeatLogInterval; });
    return said_.size() < limits::kLogTextsKept && said_.try_emplace(text, now).second;
  }

 private:
  std::map<std::string, Instant> said_;  // and when
};

}  // namespace cpprun
