#include "rendezvous/client/core/herald_core.hpp"

namespace cpprun {

HeraldCore::Do HeraldCore::on_time() {
  if (!unanswered_) return Do::Nothing;
  if (*unanswered_ * limits::kTellEndpoint >= limits::kHelloTimeout) {
    on_ended();
    return Do::DialAgain;
  }
  ++*unanswered_;
  return Do::Say;
}

}  // namespace cpprun
