// PeerLog: log lines that a peer can cause, such as the reason why it was disconnected. The log
// takes each text once a minute, and a limited number of different texts. Thread: the server's.
#pragma once

#include <string>

#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "rendezvous/server/log_rate_limiter.hpp"

namespace cpprun {

class PeerLog {
 public:
  void info(const std::string& text) {
    if (limiter_.may_log(boot_now(), text)) log::info(text);
  }
  void warning(const std::string& text) {
    if (limiter_.may_log(boot_now(), text)) log::warning(text);
  }
  void error(const std::string& text) {
    if (limiter_.may_log(boot_now(), text)) log::error(text);
  }

 private:
  LogRateLimiter limiter_;
};

}  // namespace cpprun
