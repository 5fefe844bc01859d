// LeaderAnnouncerCore: decides when the leader of a moved job announces itself at the job's
// endpoint (R17). The process that listens there may die silently, so the announcement is repeated,
// and a connection without replies is given up. Pure. LeaderAnnouncer runs it over a socket, the
// simulator over its network.
#pragma once

#include <optional>

#include "common/limits/rendezvous.hpp"

namespace cpprun {

class LeaderAnnouncerCore {
 public:
  enum class Action { Nothing, Announce, Reconnect };

  // The caller sends the first announcement at once.
  void on_connected() { unanswered_ = 1; }
  void on_answer() {
    if (unanswered_) unanswered_ = 0;
  }
  void on_ended() { unanswered_.reset(); }
  // Called each limits::kAnnounceInterval. Reconnect: the caller must drop the connection.
  Action on_time() {
    if (!unanswered_) return Action::Nothing;
    if (*unanswered_ * limits::kAnnounceInterval >= limits::kHelloTimeout) {
      on_ended();
      return Action::Reconnect;
    }
    ++*unanswered_;
    return Action::Announce;
  }

 private:
  std::optional<int> unanswered_;  // announcements since the last reply; empty: disconnected
};

}  // namespace cpprun
