// LeaderAnnouncerCore: what the line decides on which the leader of a job that moved says so at the
// job's endpoint (R17). Whoever listens there may die without a word, so it is told again and
// again, and a line on which nobody answers is given up.
//
// A core: no I/O, no clock. Leader announcer carries it out over a socket, the simulator over its
// network.
#pragma once

#include <optional>

#include "common/limits/rendezvous.hpp"

namespace cpprun {

class LeaderAnnouncerCore {
 public:
  enum class Action { Nothing, Announce, Reconnect };

  // The caller says it at once.
  void on_connected() { unanswered_ = 1; }
  void on_answer() {
    if (unanswered_) unanswered_ = 0;
  }
  void on_ended() { unanswered_.reset(); }
  // To be called each limits::kAnnounceInterval. After Reconnect the line has ended.
  Action on_time();

 private:
  std::optional<int> unanswered_;  // how often in a row; nothing: there is no line
};

}  // namespace cpprun
