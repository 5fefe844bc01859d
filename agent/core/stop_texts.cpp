#include "agent/core/stop_texts.hpp"

#include <cstdint>

#include "common/text.hpp"

namespace cpprun::agent {

std::string restart_text(const control::RankAssignment& assignment, bool is_hang) {
  const int64_t used = is_hang ? assignment.hang_restarts : assignment.restart_count;
  if (used >= assignment.max_restarts) return "";
  const std::string workers =
      assignment.world_size == 1
          ? "its worker"
          : "all " + text::count(static_cast<size_t>(assignment.world_size), "worker");
  return "restarting " + workers + " (restart " + std::to_string(used + 1) + " of " +
         std::to_string(assignment.max_restarts) + (is_hang ? " after hangs)" : ")");
}

LogEvent stop_event(const control::Stop& stop, const control::RankAssignment& assignment,
                    bool has_finished) {
  using control::StopCause;
  using Level = LogEvent::Level;
  const std::string stopping = has_finished
                                   ? "; the workers of this node had finished and start again"
                                   : "; stopping the workers";
  switch (stop.cause) {
    case StopCause::Failure: {
      const bool is_hang = stop.charged == control::RestartCharge::Hang;
      const bool is_charged = stop.charged != control::RestartCharge::None;
      const std::string restart = is_charged ? restart_text(assignment, is_hang) : "";
      if (restart.empty()) return {Level::Info, stop.why + stopping};
      return {Level::Status, stop.why + "; " + restart};
    }
    case StopCause::NodeLost:
    case StopCause::NodeLeft:
      return {Level::Warning, stop.why + stopping + " (this uses up no restart)"};
    default: return {Level::Status, stop.why + stopping};
  }
}

}  // namespace cpprun::agent
