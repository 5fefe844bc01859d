#include "rendezvous/observe/status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/version.hpp"
#include "rendezvous/coordinator/rounds/ranking.hpp"

namespace cpprun {

const char* name_of(Job::Phase phase) {
  switch (phase) {
    case Job::Phase::Recovering: return "recovering";
    case Job::Phase::WaitingForNodes: return "waiting_for_nodes";
    case Job::Phase::Running: return "running";
    case Job::Phase::Stopping: return "stopping";
    case Job::Phase::Finishing: return "finishing";
    case Job::Phase::Ended: return "ended";
  }
  return "unknown";
}

const char* name_of(const Node& node) {
  if (node.liveness == Node::Liveness::Dead) return "dead";
  if (!node.session) return "silent";
  if (node.is_draining()) return "draining";
  if (node.is_excluded) return "excluded";
  switch (node.worker_phase) {
    case Node::WorkerPhase::Idle: return "idle";
    case Node::WorkerPhase::Starting: return "starting";
    case Node::WorkerPhase::Running: return "running";
    case Node::WorkerPhase::Stopped: return "stopped";
    case Node::WorkerPhase::Done: return "done";
  }
  return "unknown";
}

std::optional<Goodput> goodput_of(const Job& job) {
  const auto is_first = [](const auto& member) { return member.second.group_rank == 0; };
  const auto member = std::ranges::find_if(job.assignments(), is_first);
  if (member == job.assignments().end()) return std::nullopt;
  const auto node = job.nodes().find(member->first);
  if (node == job.nodes().end() || node->second.time_spent.empty()) return std::nullopt;
  Goodput goodput;
  std::ranges::copy(node->second.time_spent, goodput.spent.begin());
  goodput.submissions = node->second.submissions;
  return goodput;
}

const char* outcome_of(const Job& job) {
  if (!job.has_job_result()) return nullptr;
  if (job.job_result().is_success) return "success";
  return job.job_result().is_resumable ? "stopped" : "failure";
}

ShownState state_of(const Job& job) {
  const bool has_failed = job.has_job_result() && !job.job_result().is_success;
  if (job.is_shutting_down() && (has_failed || !job.has_job_result())) return ShownState::Stopped;
  if (job.has_job_result()) return shown_state_of_outcome(outcome_of(job));
  const auto is_starting = [](const auto& entry) {
    return entry.second.worker_phase == Node::WorkerPhase::Starting;
  };
  if (job.phase() == Job::Phase::Running && std::ranges::any_of(job.nodes(), is_starting)) {
    return ShownState::Starting;
  }
  return shown_state_of_phase(name_of(job.phase()));
}

namespace {

using nlohmann::json;

json to_json(const WorkerStarts& starts) {
  json reasons = json::object();
  for (size_t i = 0; i < kSpawnReasons; ++i) {
    const auto reason = static_cast<SpawnReason>(i);
    if (starts.spawned_for(reason) > 0) reasons[name_of(reason)] = starts.spawned_for(reason);
  }
  return {{"forked", starts.forked},
          {"spawned", starts.spawned},
          {"spawned_because", reasons},
          {"preload", name_of(starts.preload)},
          {"import_saved_ms", starts.import_time / std::chrono::milliseconds(1)},
          {"all_imports_saved_ms", starts.saved_time / std::chrono::milliseconds(1)},
          {"shared_bytes", starts.shared_bytes}};
}

// `round`: the newest of the job. Reports of earlier ones name processes that are gone.
json to_json(const Node& node, RoundNumber round, bool is_standby) {
  const bool is_current = node.processes.round == round;
  return {{"name", node.id.name},
          {"state", name_of(node)},
          {"nproc", node.facts.nproc},
          {"role", node.facts.role},
          {"address", node.session_addresses.peer_address},
          {"is_host", node.is_embedded},
          {"is_standby", is_standby},
          {"group_rank", json_or_null<json>(node.group_rank)},
          {"node_check", name_of(node.facts.node_check.state)},
          {"link_check", node.link_failure.empty() ? "passed" : "failed"},
          {"pids", is_current ? json(node.processes.pids) : json::array()},
          {"log_dir", is_current ? node.processes.log_dir : ""},
          {"worker_starts", to_json(node.starts)}};
}

json to_json(const std::optional<control::SnapshotName>& snapshot) {
  if (!snapshot) return nullptr;
  return {{"step", snapshot->step}, {"id", snapshot->id}};
}

json to_json(const control::HostRecord& record) {
  return {{"host", record.host},
          {"failures", record.failures},
          {"failed_starts", record.failed_starts},
          {"hangs", record.hangs},
          {"failed_checks", record.failed_checks},
          {"losses", record.losses},
          {"slow", record.slow},
          {"excluded_by", record.is_excluded() ? json(name_of(record.exclusion)) : json(nullptr)},
          {"reason", record.reason}};
}

json slow_ranks_of(const Job& job) {
  json all = json::array();
  for (const SlowRankChange& slow : job.slow_ranks()) {
    const auto place = place_of(slow.rank, job.assignments(), job.nodes());
    all.push_back({{"rank", slow.rank},
                   {"node", place ? place->node->id.name : ""},
                   {"compute_us", slow.compute_us},
                   {"median_us", slow.median_us}});
  }
  return all;
}

// From the node of rank 0. null: it has sent nothing yet.
json goodput_json(const Job& job) {
  const std::optional<Goodput> goodput = goodput_of(job);
  if (!goodput) return nullptr;
  json spent = json::object();
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    spent[name_of(static_cast<GoodputPhase>(i))] = to_seconds(goodput->spent[i]);
  }
  return {{"share", json_or_null<json>(goodput->share())},
          {"spent_s", spent},
          {"submissions", goodput->submissions}};
}

json to_json(const Job& job) {
  json nodes = json::array();
  for (const auto& [incarnation, node] : job.nodes()) {
    nodes.push_back(to_json(node, job.round(), job.is_standby(node)));
  }
  const RestartBudget* losses = job.node_loss_budget();
  json hosts = json::array();
  for (const auto& [host, record] : job.hosts().all()) hosts.push_back(to_json(record));
  return {{"phase", name_of(job.phase())},
          {"state", name_of(state_of(job))},
          {"round", job.round().value},
          {"min_nodes", job.job_spec().min_nodes},
          {"max_nodes", job.job_spec().max_nodes},
          {"restarts_used", job.budget().used()},
          {"hang_restarts_used", job.hang_restart_budget().used()},
          {"admin_restarts", job.admin_restarts()},
          {"max_restarts", job.budget().max()},
          {"max_hangs", job.hang_restart_budget().max()},
          {"node_losses_used", losses == nullptr ? 0 : losses->used()},
          {"max_node_losses", losses == nullptr ? json(nullptr) : json(losses->max())},
          {"restart_delay_s", to_seconds(job.restart_delay())},
          {"wanted_nodes", json_or_null<json>(job.wanted_nodes())},
          {"why_no_round", job.phase() == Job::Phase::Running ? "" : job.why_no_round()},
          {"snapshot", to_json(job.newest_snapshot())},
          {"resumed_from", to_json(job.resume())},
          {"exclude_after", job.job_spec().exclude_after},
          {"hosts", hosts},
          {"stragglers", name_of(job.job_spec().stragglers)},
          {"slow_ranks", slow_ranks_of(job)},
          {"goodput", goodput_json(job)},
          {"nodes", nodes}};
}

}  // namespace

std::string status_json(const Coordinator& coordinator, const std::optional<ServerStats>& server) {
  json jobs = json::object();
  for (const auto& [run_id, job] : coordinator.jobs()) jobs[run_id] = to_json(*job);
  json all = {{"version", version()}, {"jobs", jobs}};
  if (server) {
    all["connections"] = server->connections;
    all["store"] = {{"keys", server->keys}, {"waits", server->waits}};
  }
  return dump_json(all, 2) + "\n";
}

}  // namespace cpprun
