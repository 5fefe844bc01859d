// Job: a job that has all its nodes, and agents whose user named no job.
//
// Without --rdzv-id every job has the same name. An agent that meets a full job of that name most
// likely wants to run one of its own: kept as a spare, it would end with the success of a job that
// is not its own. So it is refused. An agent that was given a run id asked for this job, and waits.
#include <vector>

#include "rendezvous/coordinator/job.hpp"

namespace cpprun {

// Whoever took part in the job belongs to it, also while there is no place for it.
bool Job::is_unwanted(const Node& node) const {
  const bool is_full =
      phase_ == Phase::Running && static_cast<int64_t>(assignments_.size()) >= job_spec_.max_nodes;
  const bool is_new = !node.group_rank && node.facts.round == RoundNumber();
  return is_full && is_new && node.facts.has_default_run_id && are_members_heard_since(node);
}

// It may be here in place of a member whose loss nobody has noticed yet: a member counts as being
// there once it has said something after the newcomer came.
bool Job::are_members_heard_since(const Node& newcomer) const {
  for (const auto& [incarnation, assignment] : assignments_) {
    if (done_.contains(incarnation)) continue;  // nobody takes the place of a node that is done
    auto member = nodes_.find(incarnation);
    if (member == nodes_.end()) return false;
    const bool may_read = member->second.heard_at > newcomer.came_at;
    if (!has_no_live_workers(member->second) && !(member->second.is_connected() && may_read))
      return false;
  }
  return true;
}

void Job::turn_unwanted_away(Effects& effects) {
  if (phase_ != Phase::Running || ready_.empty()) return;
  std::vector<Incarnation> unwanted;
  for (Incarnation incarnation : ready_) {
    if (is_unwanted(nodes_.at(incarnation))) unwanted.push_back(incarnation);
  }
  for (Incarnation incarnation : unwanted) {
    const Node& node = nodes_.at(incarnation);
    const std::string why = "job '" + options_.run_id +
                            "' has all the nodes that --nnodes allows, and this agent was given no "
                            "--rdzv-id to wait for it as a spare";
    effects.push_back(LogEvent{LogEvent::Level::Info, "full",
                               "refused the agent on " + node.id.name + ": " + why});
    send(node, control::Refused{why, occupant_for(node)}, effects);
    effects.emplace_back(Close{*node.session, false});
    on_node_lost(incarnation, control::StopCause::NodeLeft, why, effects);
  }
}

// The one that its user can see best: on the same host, else the first in rank order.
control::Occupant Job::occupant_for(const Node& newcomer) const {
  const Node* best = nullptr;
  const auto order = [&](const Node& node) {
    return std::pair(node.id.name != newcomer.id.name, node.group_rank.value_or(0));
  };
  for (const auto& [incarnation, assignment] : assignments_) {
    auto member = nodes_.find(incarnation);
    if (member == nodes_.end()) continue;
    if (best == nullptr || order(member->second) < order(*best)) best = &member->second;
  }
  return best == nullptr ? control::Occupant{} : control::Occupant{best->id.name, best->facts.pid};
}

}  // namespace cpprun
