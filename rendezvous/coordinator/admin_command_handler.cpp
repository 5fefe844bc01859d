#include "rendezvous/coordinator/admin_command_handler.hpp"

#include <algorithm>
#include <vector>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

Error refuse(const std::string& why) { return Error{ErrorKind::Refused, why}; }

Error refuse_because_stopping() { return refuse("the job is stopping, as an operator has asked"); }

// "train-1" is also the name of "train-1@machine" (a pod under Kubernetes).
bool is_called(const Node& node, const std::string& name) {
  return node.id.name == name || node.id.name.starts_with(name + "@");
}

// By group rank or by name. Several nodes may have the same name, and then only the rank will do.
Result<const Node*> find_node(const std::string& name, const AdminCommandHandler::JobView& job) {
  std::vector<const Node*> found;
  std::vector<std::string> all;
  for (const auto& [incarnation, node] : job.nodes) {
    const bool has_rank = job.round.is_member(incarnation) && node.group_rank;
    const std::string rank = has_rank ? std::to_string(*node.group_rank) : "spare";
    all.push_back(node.id.name + " (" + rank + ")");
    if (has_rank && rank == name) return &node;
    if (is_called(node, name)) found.push_back(&node);
  }
  if (found.size() == 1) return found.front();
  constexpr size_t kNamed = 32;
  if (all.size() > kNamed) {
    all.resize(kNamed);
    all.emplace_back("...");
  }
  return refuse((found.empty()
                     ? "no node of the job is called '" + name + "'; there is: "
                     : "several nodes are called '" + name + "'; choose one by its group rank: ") +
                text::join(all, ", "));
}

// By the name of a host, by group rank, or a host with faults whose agents have gone.
Result<std::string> find_host(const std::string& name, const AdminCommandHandler::JobView& job) {
  const bool is_agent_there = std::ranges::any_of(
      job.nodes, [&](const auto& entry) { return entry.second.id.name == name; });
  if (is_agent_there || job.hosts.find(name) != nullptr) return name;
  Result<const Node*> found = find_node(name, job);
  if (!found) return found.error();
  return (*found)->id.name;
}

}  // namespace

Result<AdminCommandHandler::Outcome> AdminCommandHandler::carry_out(
    const control::AdminCommand& command, const std::string& by, const JobView& job,
    Effects& effects) {
  switch (command.kind) {
    case control::AdminCommandKind::Restart: return restart(by, job);
    case control::AdminCommandKind::Stop: return stop(command.is_resumable, by, job, effects);
    case control::AdminCommandKind::Drain: return drain(command.node, by, job, effects);
    case control::AdminCommandKind::Scale: return scale(command.nodes, by, job);
    case control::AdminCommandKind::Exclude: return exclude(command, by, job);
    case control::AdminCommandKind::Readmit: return readmit(command.node, job);
  }
  return refuse("this coordinator knows no such admin command");
}

Result<AdminCommandHandler::Outcome> AdminCommandHandler::restart(const std::string& by,
                                                                  const JobView& job) {
  if (shutdown_request_) return refuse_because_stopping();
  if (job.is_delayed) return Outcome{.text = "the next round begins now", .ends_delay = true};
  if (!job.is_running) {
    return refuse("no round runs that could be restarted: " + job.why_no_round);
  }
  ++restarts_;
  return Outcome{"the workers of " + text::count(job.round.size(), "node") + " are restarted",
                 "an operator on " + by + " asked for a restart"};
}

Result<AdminCommandHandler::Outcome> AdminCommandHandler::stop(bool saves, const std::string& by,
                                                               const JobView& job,
                                                               Effects& effects) {
  shutdown_request_ =
      control::ShutdownRequest{saves, "an operator on " + by + " asked the job to stop"};
  size_t asked = 0;
  for (const auto& [incarnation, node] : job.nodes) {
    if (!node.is_connected()) continue;  // it is asked when it registers again
    send(node, *shutdown_request_, effects);
    ++asked;
  }
  return Outcome{"asked " + text::count(asked, "node") +
                 (saves ? " to save and leave" : " to leave")};
}

Result<AdminCommandHandler::Outcome> AdminCommandHandler::drain(const std::string& name,
                                                                const std::string& by,
                                                                const JobView& job,
                                                                Effects& effects) const {
  Result<const Node*> found = find_node(name, job);
  if (!found) return found.error();
  const Node& node = **found;
  if (node.is_draining()) return refuse(node.id.name + " is leaving already");
  if (!node.is_connected()) {
    return refuse(node.id.name + " has no connection to the coordinator just now; try again");
  }
  const auto stays = [&](const auto& entry) {
    return &entry.second != &node && entry.second.can_stay();
  };
  const bool is_short = std::ranges::count_if(job.nodes.all(), stays) < job_spec_.min_nodes;
  const std::string why = "an operator on " + by + " drains this node";
  send(node, control::ShutdownRequest{true, why, !is_short}, effects);
  return Outcome{
      "asked " + node.id.name + " to save and leave" +
      (is_short ? "; fewer nodes than --nnodes needs are left then, so the job ends" : "")};
}

Result<AdminCommandHandler::Outcome> AdminCommandHandler::exclude(
    const control::AdminCommand& command, const std::string& by, const JobView& job) const {
  if (shutdown_request_) return refuse_because_stopping();
  Result<std::string> host = find_host(command.node, job);
  if (!host) return host.error();
  if (job_spec_.has_fixed_ranks) {
    return refuse(
        "the ranks of a static job are fixed to its nodes, so it cannot continue without one");
  }
  if (job.hosts.is_excluded(*host)) return refuse(*host + " is excluded already");
  const std::string reason = command.reason.empty() ? "" : ": " + command.reason;
  if (!job.hosts.exclude(*host, "by an operator on " + by + reason)) {
    return refuse("too many hosts are excluded already: " + std::to_string(limits::kHostRecords));
  }
  const auto is_other = [&](const auto& entry) {
    return entry.second.can_stay() && !job.hosts.is_excluded(entry.second.id.name);
  };
  const bool is_short = std::ranges::count_if(job.nodes.all(), is_other) < job_spec_.min_nodes;
  Outcome outcome{*host + " is excluded" +
                  (is_short ? "; fewer nodes than --nnodes needs are left, so the job waits" : "")};
  const auto is_needed = [&](const auto& entry) {
    return entry.second.id.name == *host && job.round.needs(entry.first);
  };
  if (job.is_running && std::ranges::any_of(job.nodes, is_needed)) {
    outcome.stop_because = "an operator on " + by + " excluded " + *host + reason;
    outcome.stop_cause = control::StopCause::Exclusion;
  }
  return outcome;
}

Result<AdminCommandHandler::Outcome> AdminCommandHandler::readmit(const std::string& name,
                                                                  const JobView& job) const {
  Result<std::string> host = find_host(name, job);
  if (!host) return host.error();
  if (!job.hosts.readmit(*host)) return refuse(*host + " is not excluded");
  return Outcome{*host + " is admitted again; its faults are forgotten"};
}

Result<AdminCommandHandler::Outcome> AdminCommandHandler::scale(int64_t nodes,
                                                                const std::string& by,
                                                                const JobView& job) {
  if (job_spec_.min_nodes == job_spec_.max_nodes) {
    return refuse("the job was started with a fixed number of nodes (--nnodes=" +
                  std::to_string(job_spec_.max_nodes) + "); only --nnodes=MIN:MAX can be scaled");
  }
  if (nodes < job_spec_.min_nodes || nodes > job_spec_.max_nodes) {
    return refuse(std::to_string(nodes) + " is not within --nnodes=" +
                  std::to_string(job_spec_.min_nodes) + ":" + std::to_string(job_spec_.max_nodes));
  }
  if (shutdown_request_) return refuse_because_stopping();
  if (job.round.is_any_done() && job.is_running) {
    return refuse("a node has finished its part already, which would have to be done again");
  }
  wanted_nodes_ = nodes;
  const auto members = static_cast<int64_t>(job.round.size());
  const std::string wanted = text::count(static_cast<size_t>(nodes), "node");
  const std::string target = "the job wants " + wanted;
  if (!job.is_running) return Outcome{target + ", from the next round on"};
  if (members == nodes) return Outcome{target + ", as it has"};
  const bool has_spares = members < nodes && !job.nodes.ready().empty();
  if (members < nodes && !has_spares) return Outcome{target + "; it grows when more come"};
  return Outcome{
      target + (has_spares ? "; it grows now" : "; the last ones in rank order become spares"),
      "an operator on " + by + " asked for " + wanted, control::StopCause::Scale};
}

}  // namespace cpprun
