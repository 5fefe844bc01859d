// The causes for which a round stops, as words: events, metrics and pages use the same
// (docs/events.md, "A round").
#pragma once

#include "rendezvous/protocol/control.hpp"

namespace cpprun::control {

// "failure", "node_lost", "node_left", "growth", "operator", "drain", "snapshot".
constexpr const char* name_of(StopCause cause) {
  switch (cause) {
    case StopCause::Failure:
      return "failure";
    case StopCause::NodeLost:
      return "node_lost";
    case StopCause::NodeLeft:
      return "node_left";
    case StopCause::Growth:
      return "growth";
    case StopCause::Operator:
      return "operator";
    case StopCause::Drain:
      return "drain";
    case StopCause::Snapshot:
      return "snapshot";
  }
  return "unknown";
}

}  // namespace cpprun::control
