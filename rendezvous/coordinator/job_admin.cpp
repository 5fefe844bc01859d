// Job: what operators ask of the whole job, and what comes of it.
#include <algorithm>

#include "common/text.hpp"
#include "rendezvous/coordinator/job.hpp"

namespace cpprun {

using control::AdminCommandKind;
using control::StopCause;

namespace {

Error refuse(const std::string& why) {
  return Error{ErrorKind::Refused, why};
}

}  // namespace

control::AdminReply Job::on_admin_command(Instant now, const control::AdminCommand& order,
                                          const std::string& by, Effects& effects) {
  Result<std::string> done =
      has_job_result() ? refuse("the job is over") : carry_out(order, by, effects);
  advance(now, effects);
  if (!done) return {order.id, false, done.error().text};
  effects.push_back(
      LogEvent{LogEvent::Level::Info, "admin_command", "an operator on " + by + ": " + *done});
  return {order.id, true, *done};
}

// The answer goes first: what follows may end the asker.
void Job::reply_to_admin_command(Instant now, const Node& asker, const control::AdminCommand& order,
                                 Effects& effects) {
  const Incarnation incarnation = asker.id.incarnation;
  Effects follows;
  control::AdminReply answer = on_admin_command(now, order, asker.id.name, follows);
  send(nodes_.at(incarnation), std::move(answer), effects);
  effects.insert(effects.end(), follows.begin(), follows.end());
}

Result<std::string> Job::carry_out(const control::AdminCommand& order, const std::string& by,
                                   Effects& effects) {
  switch (order.kind) {
    case AdminCommandKind::Restart:
      return restart_all(by, effects);
    case AdminCommandKind::Stop:
      return stop_all(order.is_resumable, by, effects);
    case AdminCommandKind::Drain:
      return drain_node(order.node, by, effects);
    case AdminCommandKind::Scale:
      return scale_to(order.nodes, by, effects);
  }
  return refuse("this coordinator knows no such admin command");
}

// Workers save as when a node drains, and what fails meanwhile costs nothing; but nobody leaves.
void Job::stop_on_request(const std::string& why, Effects& effects) {
  is_drained_ = has_saved_ = true;
  drained_by_.clear();
  request_stop(StopCause::Operator, why, effects);
}

// ---------------------------------------------------------------- restart, stop

Result<std::string> Job::restart_all(const std::string& by, Effects& effects) {
  if (shutdown_request_) return refuse("the job is stopping, as an operator has asked");
  if (phase_ != Phase::Running) {
    return refuse("no round runs that could be restarted: " + why_no_round());
  }
  ++admin_restarts_;
  stop_on_request("an operator on " + by + " asked for a restart", effects);
  return "the workers of " + text::count(assignments_.size(), "node") + " are restarted";
}

Result<std::string> Job::stop_all(bool saves, const std::string& by, Effects& effects) {
  shutdown_request_ =
      control::ShutdownRequest{saves, "an operator on " + by + " asked the job to stop"};
  size_t told = 0;
  for (const auto& [incarnation, node] : nodes_) {
    if (!node.is_connected()) continue;  // told when it is back
    send(node, *shutdown_request_, effects);
    ++told;
  }
  return "asked " + text::count(told, "node") + (saves ? " to save and leave" : " to leave");
}

// ---------------------------------------------------------------- drain

// A name that several nodes have says nothing; a group rank does.
Result<const Node*> Job::find_node(const std::string& name) const {
  std::vector<const Node*> found;
  std::vector<std::string> all;
  for (const auto& [incarnation, node] : nodes_) {
    const bool has_rank = is_member(incarnation) && node.group_rank;
    const std::string rank = has_rank ? std::to_string(*node.group_rank) : "spare";
    all.push_back(node.id.name + " (" + rank + ")");
    if (has_rank && rank == name) return &node;
    if (node.id.name == name) found.push_back(&node);
  }
  if (found.size() == 1) return found.front();
  constexpr size_t kNamed = 32;
  if (all.size() > kNamed) {
    all.resize(kNamed);
    all.emplace_back("...");
  }
  return refuse((found.empty()
                     ? "no node of the job is called '" + name + "'; there is: "
                     : "several nodes are called '" + name + "'; say which by its group rank: ") +
                text::join(all, ", "));
}

Result<std::string> Job::drain_node(const std::string& name, const std::string& by,
                                    Effects& effects) {
  Result<const Node*> found = find_node(name);
  if (!found) return found.error();
  const Node& node = **found;
  if (node.is_draining()) return refuse(node.id.name + " is leaving already");
  if (!node.is_connected()) {
    return refuse(node.id.name + " has no connection to the coordinator just now; try again");
  }
  send(node, control::ShutdownRequest{true, "an operator on " + by + " drains this node"}, effects);
  const auto stays = [&](const auto& entry) {
    return &entry.second != &node && entry.second.is_connected() && !entry.second.is_draining();
  };
  const bool is_short = std::ranges::count_if(nodes_, stays) < job_spec_.min_nodes;
  return "asked " + node.id.name + " to save and leave" +
         (is_short ? "; fewer nodes than --nnodes needs are left then" : "");
}

void Job::on_draining(Node& node, Effects& effects) {
  if (node.is_draining()) return;
  node.facts.is_draining = true;
  is_host_drained_ = is_host_drained_ || node.is_embedded;
  if (is_drained_ && drained_by_.empty()) drained_by_ = node.id.name;  // after an admin command
  effects.push_back(LogEvent{LogEvent::Level::Info, "draining",
                             "the agent on " + node.id.name + " was asked to stop"});
  if (is_member(node.id.incarnation)) request_drain(node, effects);
}

// The workers of all nodes save together, so all are asked to.
void Job::request_drain(const Node& node, Effects& effects) {
  if (phase_ != Phase::Running) return;
  is_drained_ = has_saved_ = true;
  drained_by_ = node.id.name;
  request_stop(StopCause::Drain, node.id.name + " was asked to stop", effects);
}

// ---------------------------------------------------------------- scale

Result<std::string> Job::scale_to(int64_t nodes, const std::string& by, Effects& effects) {
  if (job_spec_.min_nodes == job_spec_.max_nodes) {
    return refuse("the job was started with a fixed number of nodes (--nnodes=" +
                  std::to_string(job_spec_.max_nodes) + "); only --nnodes=MIN:MAX can be scaled");
  }
  if (nodes < job_spec_.min_nodes || nodes > job_spec_.max_nodes) {
    return refuse(std::to_string(nodes) + " is not within --nnodes=" +
                  std::to_string(job_spec_.min_nodes) + ":" + std::to_string(job_spec_.max_nodes));
  }
  if (shutdown_request_) return refuse("the job is stopping, as an operator has asked");
  if (!done_.empty() && phase_ == Phase::Running) {
    return refuse("a node has finished its part already, which would have to be done again");
  }
  wanted_nodes_ = nodes;
  const auto now_there = static_cast<int64_t>(assignments_.size());
  const std::string target = "the job wants " + text::count(static_cast<size_t>(nodes), "node");
  if (phase_ != Phase::Running) return target + ", from the next round on";
  if (now_there == nodes) return target + ", as it has";
  const bool has_spares = now_there < nodes && !ready_.empty();
  if (now_there < nodes && !has_spares) return target + "; it grows when more come";
  stop_on_request(
      "an operator on " + by + " asked for " + text::count(static_cast<size_t>(nodes), "node"),
      effects);
  return target + (has_spares ? "; it grows now" : "; the last ones in rank order become spares");
}

}  // namespace cpprun
