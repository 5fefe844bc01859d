#include "rendezvous/coordinator/waiting_nodes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/text.hpp"

namespace cpprun {
namespace {

// The newcomer may replace a member whose loss is not noticed yet, so every member must have sent
// something since it came. No node replaces a member that is done.
bool are_members_heard_since(const Node& newcomer, const Round& round, const NodeTable& nodes,
                             const LeaseTracker& leases) {
  for (const auto& [incarnation, assignment] : round.assignments()) {
    if (round.is_done(incarnation)) continue;
    const Node* member = nodes.find(incarnation);
    if (member == nullptr) return false;
    const bool is_heard = member->is_connected() && member->heard_at > newcomer.came_at;
    if (!leases.is_exempt(*member) && !is_heard) return false;
  }
  return true;
}

// ": a, b; 2 missing": the first names, since each waiting node gets the text.
std::string ready_text(const NodeTable& nodes, int64_t min_nodes) {
  constexpr size_t kNamed = 4;
  std::vector<std::string> names;
  for (const Incarnation incarnation : nodes.ready()) {
    if (names.size() == kNamed) break;
    names.push_back(nodes.at(incarnation).id.name);
  }
  std::ranges::sort(names);
  const auto ready = static_cast<size_t>(nodes.ready_count());
  std::string text = names.empty() ? "" : ": " + text::join(names, ", ");
  if (ready > names.size()) text += " and " + std::to_string(ready - names.size()) + " more";
  const int64_t missing = nodes.missing_count(min_nodes);
  return missing > 0 && !names.empty() ? text + "; " + std::to_string(missing) + " missing" : text;
}

// A run id that differs between nodes makes two jobs of one, and both wait.
std::string rivals_text(const std::vector<std::string>& rivals) {
  if (rivals.empty()) return "";
  return "; job '" + rivals.front() + "'" + (rivals.size() == 1 ? " waits" : " and others wait") +
         " for nodes at this endpoint too: do all nodes have the same --rdzv-id?";
}

}  // namespace

std::string why_no_round(JobPhase phase, const JobState& state, const control::JobSpec& job_spec,
                         const NodeTable& nodes, size_t stopping,
                         const std::vector<std::string>& rivals) {
  switch (phase) {
    case JobPhase::Recovering:
      return "another coordinator has led this job; its nodes are waited for";
    case JobPhase::Running:
      return static_cast<int64_t>(state.round.size()) >= state.admin.max_nodes()
                 ? "a round runs with " + text::count(state.round.size(), "node") +
                       (state.admin.wanted_nodes() ? ", as many as an operator wants"
                                                   : ", the most that --nnodes allows") +
                       "; this node is a spare: it takes a lost node's place, or ends with the job"
                 : "a round runs; this node is taken in with the next one";
    case JobPhase::Stopping:
      return "the last round is stopping; " + text::count(stopping, "node") + " still have workers";
    case JobPhase::WaitingForNodes: {
      const std::string excluded = state.hosts.excluded_text();
      return std::to_string(nodes.ready_count()) + " of at least " +
             std::to_string(job_spec.min_nodes) + " nodes joined" +
             (job_spec.min_nodes == job_spec.max_nodes
                  ? ""
                  : " (at most " + std::to_string(job_spec.max_nodes) + ")") +
             ready_text(nodes, job_spec.min_nodes) +
             (excluded.empty() ? "" : "; excluded: " + excluded) + rivals_text(rivals);
    }
    case JobPhase::Finishing:
    case JobPhase::Ended: return "the job is over";
  }
  return "";
}

std::string why_left_out(const Node& node, const HostLedger& hosts) {
  if (node.is_excluded) {
    return node.id.name +
           " is excluded and takes part in no round: " + hosts.find(node.id.name)->reason +
           "; cpprunctl readmit " + node.id.name + " takes it in again";
  }
  if (node.has_failed_check()) return "the node check failed: " + node.facts.node_check.why;
  if (!node.link_failure.empty()) {
    return "the network link of " + node.id.name +
           " has failed its check, so it takes part in no round: " + node.link_failure;
  }
  return "";
}

std::string what_follows(int64_t usable, const control::JobSpec& job_spec, size_t members) {
  if (usable < job_spec.min_nodes) {
    return "no spare is here, and the job waits for another node (" + std::to_string(usable) +
           " of at least " + std::to_string(job_spec.min_nodes) + ")";
  }
  if (usable >= static_cast<int64_t>(members)) return "a spare takes its place";
  return "no spare is here, and the job continues with " +
         text::count(static_cast<size_t>(usable), "node");
}

void refuse_unwanted(const Node& node, const std::string& why, const Round& round,
                     const NodeTable& nodes, Effects& effects) {
  log_info(effects, "full", "refused the agent on " + node.id.name + ": " + why);
  refuse(effects, *node.session, control::Refused{why, occupant_for(node, round, nodes)});
}

bool is_unwanted(const Node& node, const Round& round, int64_t max_nodes, const NodeTable& nodes,
                 const LeaseTracker& leases) {
  const bool is_full = static_cast<int64_t>(round.size()) >= max_nodes;
  const bool is_new = !node.group_rank && node.facts.round == RoundNumber();
  return is_full && is_new && node.facts.has_default_run_id &&
         are_members_heard_since(node, round, nodes, leases);
}

control::Occupant occupant_for(const Node& newcomer, const Round& round, const NodeTable& nodes) {
  const Node* best = nullptr;
  const auto order = [&](const Node& node) {
    return std::pair(node.id.name != newcomer.id.name, node.group_rank.value_or(0));
  };
  for (const auto& [incarnation, assignment] : round.assignments()) {
    const Node* member = nodes.find(incarnation);
    if (member == nullptr) continue;
    if (best == nullptr || order(*member) < order(*best)) best = member;
  }
  return best == nullptr ? control::Occupant{} : control::Occupant{best->id.name, best->facts.pid};
}

}  // namespace cpprun
