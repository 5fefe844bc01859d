#include "rendezvous/observe/status.hpp"

#include <nlohmann/json.hpp>

namespace cpprun {

const char* name_of(Membership::Phase phase) {
  switch (phase) {
    case Membership::Phase::Recovering:
      return "recovering";
    case Membership::Phase::Gathering:
      return "gathering";
    case Membership::Phase::Running:
      return "running";
    case Membership::Phase::Stopping:
      return "stopping";
    case Membership::Phase::Deciding:
      return "deciding";
    case Membership::Phase::Ended:
      return "ended";
  }
  return "unknown";
}

const char* name_of(const Node& node) {
  if (node.life == Node::Life::Dead) return "dead";
  if (!node.session) return "silent";
  if (node.is_draining()) return "draining";
  switch (node.work) {
    case Node::Work::Idle:
      return "idle";
    case Node::Work::Starting:
      return "starting";
    case Node::Work::Running:
      return "running";
    case Node::Work::Stopped:
      return "stopped";
    case Node::Work::Done:
      return "done";
  }
  return "unknown";
}

const char* outcome_of(const Membership& job) {
  if (!job.is_decided()) return nullptr;
  if (job.decision().is_success) return "success";
  return job.decision().is_resumable ? "stopped" : "failure";
}

namespace {

using nlohmann::json;

json to_json(const Node& node, bool is_heir) {
  json object = {{"name", node.id.name},
                 {"state", name_of(node)},
                 {"nproc", node.facts.nproc},
                 {"role", node.facts.role},
                 {"address", node.session_facts.peer_address},
                 {"is_host", node.is_embedded},
                 {"is_heir", is_heir}};
  object["group_rank"] = node.group_rank ? json(*node.group_rank) : json(nullptr);
  return object;
}

json to_json(const std::optional<control::SnapshotName>& snapshot) {
  if (!snapshot) return nullptr;
  return {{"step", snapshot->step}, {"id", snapshot->id}};
}

json to_json(const Membership& job) {
  json nodes = json::array();
  for (const auto& [incarnation, node] : job.nodes()) {
    nodes.push_back(to_json(node, job.is_heir(node)));
  }
  return {{"phase", name_of(job.phase())},
          {"round", job.round().value},
          {"min_nodes", job.terms().min_nodes},
          {"max_nodes", job.terms().max_nodes},
          {"restarts_used", job.budget().used()},
          {"hang_restarts_used", job.hang_budget().used()},
          {"operator_restarts", job.operator_restarts()},
          {"max_restarts", job.budget().max()},
          {"wanted_nodes", job.wanted_nodes() ? json(*job.wanted_nodes()) : json(nullptr)},
          {"why_no_round", job.phase() == Membership::Phase::Running ? "" : job.why_no_round()},
          {"snapshot", to_json(job.newest_snapshot())},
          {"resumed_from", to_json(job.resume())},
          {"nodes", nodes}};
}

}  // namespace

std::string status_json(const Coordinator& coordinator, const std::optional<ServerFacts>& server) {
  json jobs = json::object();
  for (const auto& [run_id, job] : coordinator.jobs()) jobs[run_id] = to_json(*job);
  json all = {{"version", CPPRUN_VERSION}, {"jobs", jobs}};
  if (server) {
    all["connections"] = server->connections;
    all["store"] = {{"keys", server->keys}, {"waits", server->waits}};
  }
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace cpprun
