#include "rendezvous/client/core/leader_announcer_core.hpp"

namespace cpprun {

LeaderAnnouncerCore::Action LeaderAnnouncerCore::on_time() {
  if (!unanswered_) return Action::Nothing;
  if (*unanswered_ * limits::kAnnounceInterval >= limits::kHelloTimeout) {
    on_ended();
    return Action::Reconnect;
  }
  ++*unanswered_;
  return Action::Announce;
}

}  // namespace cpprun
