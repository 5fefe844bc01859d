#include "rendezvous/observe/dashboard_json.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "common/failure/failure_class.hpp"
#include "common/json.hpp"
#include "common/limits/dashboard.hpp"
#include "common/version.hpp"
#include "rendezvous/coordinator/rank_progress.hpp"
#include "rendezvous/coordinator/rounds/ranking.hpp"
#include "rendezvous/observe/status.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {
namespace {

using nlohmann::json;

json ms(Instant at) { return at.nanoseconds() / 1'000'000; }
json ms(const std::optional<Instant>& at) { return at ? ms(*at) : json(nullptr); }

json step_of(const std::optional<control::SnapshotName>& snapshot) {
  return snapshot ? json(snapshot->step) : json(nullptr);
}

// An array for compactness: name, state, workers, role, address, group rank, base rank.
json node_row(const Job& job, const Node& node) {
  const auto assignment = job.assignments().find(node.id.incarnation);
  const bool is_member = assignment != job.assignments().end();
  return {node.id.name,
          name_of(node),
          node.facts.nproc,
          node.facts.role,
          node.session_addresses.peer_address,
          is_member ? json(assignment->second.group_rank) : json(nullptr),
          is_member ? json(assignment->second.base_rank) : json(nullptr)};
}

// Members first, by rank, so that the map stays stable while other nodes come and go.
json node_rows(const Job& job) {
  std::vector<const Node*> nodes;
  for (const auto& [incarnation, node] : job.nodes()) nodes.push_back(&node);
  const auto place = [&job](const Node* node) {
    const auto assignment = job.assignments().find(node->id.incarnation);
    return assignment == job.assignments().end() ? INT64_MAX : assignment->second.group_rank;
  };
  std::ranges::stable_sort(nodes, {}, place);
  json rows = json::array();
  for (const Node* node : nodes) {
    if (rows.size() == limits::kNodesShown) break;
    rows.push_back(node_row(job, *node));
  }
  return rows;
}

json to_json(const RoundRecord& record) {
  json object = {{"round", record.round.value},         {"nodes", record.nodes},
                 {"workers", record.workers},           {"formed_ms", ms(record.formed_at)},
                 {"started_ms", ms(record.started_at)}, {"stopped_ms", ms(record.stopped_at)},
                 {"over_ms", ms(record.over_at)}};
  if (record.stopped_at) {
    object["cause"] = control::name_of(record.cause);
    object["why"] = record.why;
  }
  if (record.failure) {
    object["class"] = name_of(*record.failure);
    object["root_cause"] = record.root_cause;
    object["error"] = record.error;
    object["location"] = record.location;
    object["hint"] = record.hint;
    object["last_lines"] = record.last_lines;
  }
  return object;
}

json to_json(const Job& job, const JobHistory* record) {
  json rounds = json::array();
  if (record != nullptr) {
    for (const RoundRecord& each : record->rounds()) rounds.push_back(to_json(each));
  }
  json slow_ranks = json::array();
  for (const SlowRankChange& slow : job.slow_ranks()) slow_ranks.push_back(slow.rank);
  json node_losses;
  if (const RestartBudget* losses = job.node_loss_budget()) {
    node_losses = {losses->used(), losses->max()};
  }
  const bool has_job_result = job.has_job_result();
  const std::optional<Goodput> goodput = goodput_of(job);
  return {{"phase", name_of(job.phase())},
          {"state", name_of(state_of(job))},
          {"outcome", has_job_result ? json(outcome_of(job)) : json(nullptr)},
          {"failure_summary",
           has_job_result ? job.job_result().failure_summary.substr(0, limits::kReasonBytesReported)
                          : ""},
          {"round", job.round().value},
          {"min_nodes", job.job_spec().min_nodes},
          {"max_nodes", job.job_spec().max_nodes},
          {"has_fixed_ranks", job.job_spec().has_fixed_ranks},
          {"world_size", job.world_size()},
          {"restarts", {job.budget().used(), job.budget().max()}},
          {"hang_restarts", {job.hang_restart_budget().used(), job.hang_restart_budget().max()}},
          {"node_losses", node_losses},
          {"why_no_round", job.phase() == Job::Phase::Running ? "" : job.why_no_round()},
          {"snapshot_step", step_of(job.newest_snapshot())},
          {"resumed_from", step_of(job.resume())},
          {"slow_ranks", slow_ranks},
          {"goodput", json_or_null<json>(goodput ? goodput->share() : std::nullopt)},
          {"submissions", goodput ? goodput->submissions : 1},
          {"node_count", job.nodes().size()},
          {"nodes", node_rows(job)},
          {"rounds", rounds}};
}

// Adds the ranks of a node below limits::kRanksListed, as arrays for compactness.
void add_workers(const Node& node, int64_t base_rank, json& rows) {
  const control::WorkerProcesses& all = node.processes;
  const auto listed = static_cast<int64_t>(limits::kRanksListed);
  for (size_t i = 0; i < all.pids.size(); ++i) {
    const int64_t rank = base_rank + static_cast<int64_t>(i);
    if (rank >= listed) break;
    if (all.pids[i] <= 0) continue;
    const int64_t memory_mib = i < all.memory_mib.size() ? all.memory_mib[i] : -1;
    const std::string log = all.log_dir.empty() ? "" : all.log_dir + "/" + std::to_string(i);
    rows.push_back({rank, all.pids[i], memory_mib, log});
  }
}

// The first ranks of the newest round, as far as their nodes have reported them.
json worker_rows(const Job& job) {
  std::map<int64_t, const Node*> nodes;  // by their first rank
  for (const auto& [incarnation, assignment] : job.assignments()) {
    const auto node = job.nodes().find(incarnation);
    if (node == job.nodes().end() || node->second.processes.round != job.round()) continue;
    nodes.emplace(assignment.base_rank, &node->second);
  }
  json rows = json::array();
  for (const auto& [base_rank, node] : nodes) add_workers(*node, base_rank, rows);
  return rows;
}

// An array for compactness; docs/how-to/dashboard.md lists the elements.
json to_json(const StepPoint& point) {
  return {ms(point.at),
          point.round.value,
          point.step,
          point.last,
          json_or_null<json>(point.median_us),
          json_or_null<json>(point.slowest_us),
          point.slowest_rank};
}

// The reason if there are no lines to show; otherwise empty.
std::string why_no_lines(const Job& job, const std::optional<RankLocation>& place,
                         const control::LogLines* lines) {
  if (!place) return "no node has this rank now";
  if (!place->node->is_connected()) return "its node is out of touch";
  if (!place->node->facts.reports_log_lines)
    return "the agent of its node is older and sends no lines";
  if (lines == nullptr || lines->round != job.round()) return "waiting for its node";
  if (!lines->has_files) return "this job keeps no log files; start it with --log-dir DIR --tee 3";
  return "";
}

}  // namespace

std::string dashboard_state(const Coordinator& coordinator, const HistoryRecorder& job_history) {
  json jobs = json::object();
  for (const auto& [run_id, job] : coordinator.jobs()) {
    jobs[run_id] = to_json(*job, job_history.of(run_id));
  }
  return dump_json(json{{"version", version()}, {"host", coordinator.host()}, {"jobs", jobs}});
}

std::string dashboard_progress(const Coordinator& coordinator) {
  json jobs = json::object();
  for (const auto& [run_id, job] : coordinator.jobs()) {
    const RankProgress& progress = job->progress();
    if (progress.round == RoundNumber()) continue;
    jobs[run_id] = {{"round", progress.round.value},
                    {"at_ms", ms(progress.at)},
                    {"steps", progress.steps},
                    {"step_us", progress.step_us}};
  }
  return dump_json(json{{"jobs", jobs}});
}

std::string dashboard_workers(const Coordinator& coordinator) {
  json jobs = json::object();
  for (const auto& [run_id, job] : coordinator.jobs()) {
    json rows = worker_rows(*job);
    if (!rows.empty()) jobs[run_id] = {{"round", job->round().value}, {"ranks", std::move(rows)}};
  }
  return dump_json(json{{"jobs", jobs}});
}

std::string dashboard_steps(const StepHistory& history) {
  json jobs = json::object();
  for (const auto& [run_id, points] : history.jobs()) {
    json& all = jobs[run_id] = json::array();
    for (const StepPoint& point : points) all.push_back(to_json(point));
  }
  return dump_json(json{{"jobs", jobs}});
}

std::string dashboard_lines(const Coordinator& coordinator, const JobRank& wanted) {
  json object = {{"run_id", wanted.run_id}, {"rank", wanted.rank}};
  const auto found = coordinator.jobs().find(wanted.run_id);
  if (found == coordinator.jobs().end()) {
    object["why"] = "there is no such job here";
    return dump_json(object);
  }
  const Job& job = *found->second;
  const std::optional<RankLocation> place = place_of(wanted.rank, job.assignments(), job.nodes());
  const control::LogLines* lines = place ? place->node->lines_of(place->local_rank) : nullptr;
  object["round"] = job.round().value;
  if (place) object["node"] = place->node->id.name;
  object["why"] = why_no_lines(job, place, lines);
  const bool has_lines = lines != nullptr && object["why"] == "";
  object["out"] = has_lines ? json(lines->out) : json::array();
  object["err"] = has_lines ? json(lines->err) : json::array();
  return dump_json(object);
}

}  // namespace cpprun
