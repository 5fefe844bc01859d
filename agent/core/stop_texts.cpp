#include "agent/core/stop_texts.hpp"

#include <cstdint>

#include "agent/core/restart_budget.hpp"
#include "common/text.hpp"

namespace cpprun::agent {

namespace {

// "this uses up no restart", "node loss 1 of 3".
std::string cost_of_loss(const control::Stop& stop, const control::RankAssignment& assignment) {
  if (stop.charged != control::RestartCharge::NodeLoss) return "this uses up no restart";
  const control::ClassBudgets budgets = class_budgets(assignment);
  const std::string max = std::to_string(budgets.max_node_losses);
  return budgets.node_losses < budgets.max_node_losses
             ? "node loss " + std::to_string(budgets.node_losses + 1) + " of " + max
             : "no node loss of --max-node-losses=" + max + " is left";
}

}  // namespace

std::string restart_text(const control::RankAssignment& assignment, bool is_hang, bool regroups) {
  const int64_t used = is_hang ? assignment.hang_restarts : assignment.restart_count;
  const int64_t max = is_hang ? max_hangs(assignment) : assignment.max_restarts;
  if (used >= max) return "";
  const std::string workers =
      assignment.world_size == 1
          ? "its worker"
          : "all " + text::count(static_cast<size_t>(assignment.world_size), "worker");
  return (regroups ? "regrouping the other workers" : "restarting " + workers) + " (restart " +
         std::to_string(used + 1) + " of " + std::to_string(max) +
         (is_hang ? " after hangs)" : ")");
}

std::string regrouped_text(RoundNumber round, int64_t kept, int64_t replaced) {
  const auto number = [](int64_t count) { return count == 0 ? "none" : std::to_string(count); };
  const std::string workers = kept == 0   ? "no worker stays"
                              : kept == 1 ? "1 worker stays"
                                          : std::to_string(kept) + " workers stay";
  return "round " + std::to_string(round.value) + " on this node: " + workers + ", " +
         number(replaced) + (replaced > 1 ? " are" : " is") + " replaced";
}

LogEvent stop_event(const control::Stop& stop, const control::RankAssignment& assignment,
                    bool has_finished, bool regroups) {
  using control::StopCause;
  using Level = LogEvent::Level;
  const std::string stopping = has_finished
                                   ? "; the workers of this node had finished and start again"
                               : regroups ? "; regrouping the workers"
                                          : "; stopping the workers";
  switch (stop.cause) {
    case StopCause::Failure: {
      const bool is_hang = stop.charged == control::RestartCharge::Hang;
      const bool is_charged = stop.charged != control::RestartCharge::None;
      const std::string restart = is_charged ? restart_text(assignment, is_hang, regroups) : "";
      if (restart.empty()) return {Level::Info, stop.why + stopping};
      return {Level::Status, stop.why + "; " + restart};
    }
    case StopCause::NodeLost:
    case StopCause::NodeLeft:
      return {Level::Warning, stop.why + stopping + " (" + cost_of_loss(stop, assignment) + ")"};
    default: return {Level::Status, stop.why + stopping};
  }
}

}  // namespace cpprun::agent
