#include "agent/daemon/events/torchelastic_events.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "agent/core/worker_environment.hpp"
#include "common/json.hpp"
#include "common/log/log.hpp"

namespace cpprun {
namespace {

using nlohmann::ordered_json;

double to_ms(Duration duration) { return to_seconds(duration) * 1e3; }

// torchelastic's record for a worker without an error file.
ordered_json raw_error(const WorkerExit& end) {
  const std::string message = end.error ? end.error->message : "<NONE>";
  return {{"message", message},
          {"errorTraits", {{"category", "system_terminated_error"}, {"retryability", "False"}}}};
}

}  // namespace

struct TorchelasticEvents::Record {
  const char* state = "";
  const Worker* worker = nullptr;  // nullptr: a record of the agent
  const WorkerExit* failure = nullptr;
  std::optional<Duration> took{};
  std::string error{};  // of the agent
};

TorchelasticEvents::TorchelasticEvents(const AgentConfig& config, std::string node)
    : config_(config), node_(std::move(node)), is_on_(config.event_log_handler == "console") {}

void TorchelasticEvents::waits_for_round(Instant now) {
  if (began_at_ == Instant{}) began_at_ = now;
  waits_since_ = now;
}

// The coordinator assigns ranks together with the round, so ASSIGN_WORKER_RANKS takes no time. Both
// records contain the node's previous ranks, as torchrun's do.
void TorchelasticEvents::round_formed(Instant now, const control::RankAssignment& assignment) {
  restarts_ = agent::restarts_of(assignment);
  print({"RENDEZVOUS", nullptr, nullptr, now - waits_since_});
  print({"ASSIGN_WORKER_RANKS", nullptr, nullptr, Duration{}});
  assignment_ = assignment;
  has_assignment_ = true;
  workers_.clear();
  ends_.clear();
}

void TorchelasticEvents::worker_started(LocalRank local_rank, int pid) {
  workers_.push_back({local_rank, pid});
}

void TorchelasticEvents::round_started() {
  for (const Worker& worker : workers_) print({"START", &worker});
}

void TorchelasticEvents::worker_exited(const WorkerExit& end) {
  if (is_on_) ends_.push_back(end);
}

void TorchelasticEvents::finished(Instant now, const agent::Finish& finish) {
  using How = agent::Finish::How;
  seconds_ = (now - began_at_) / std::chrono::seconds(1);
  const bool is_cut_off =
      finish.how == How::Error || finish.how == How::Signal || finish.how == How::Unusable;
  if (!is_cut_off) {
    for (const Worker& worker : workers_) {
      const auto is_its = [&](const WorkerExit& end) { return end.pid == worker.pid; };
      const auto end = std::ranges::find_if(ends_, is_its);
      print_end(worker, end == ends_.end() ? nullptr : &*end, finish.how == How::Failure);
    }
  }
  Record record{is_cut_off ? "FAILED" : "SUCCEEDED"};
  record.error = is_cut_off ? finish.text : "";
  print(record);
}

void TorchelasticEvents::print_end(const Worker& worker, const WorkerExit* end,
                                   bool has_failed) const {
  const bool is_well = end != nullptr && end->is_success();
  if (has_failed && end != nullptr && !is_well) return print({"FAILED", &worker, end});
  print({has_failed || !is_well ? "TERMINATED" : "SUCCEEDED", &worker});
}

void TorchelasticEvents::print(const Record& record) const {
  if (!is_on_) return;
  ordered_json inner{{"group_world_size", nullptr}, {"entry_point", nullptr}};
  const std::string& program = config_.workers.program.front();
  inner["entry_point"] = program.substr(program.rfind('/') + 1);
  if (has_assignment_) inner["group_world_size"] = assignment_.group_size;
  ordered_json body{{"run_id", config_.rendezvous.run_id},
                    {"global_rank", nullptr},
                    {"group_rank", nullptr},
                    {"worker_id", nullptr},
                    {"role", config_.workers.role},
                    {"hostname", node_},
                    {"state", record.state},
                    {"total_run_time", seconds_}};
  body["rdzv_backend"] = name_of(config_.rendezvous.backend);
  body["raw_error"] = nullptr;
  if (has_assignment_) body["group_rank"] = assignment_.group_rank;
  if (record.worker != nullptr) {
    const int64_t local = record.worker->local_rank.value;
    body["global_rank"] = assignment_.base_rank + local;
    body["worker_id"] = std::to_string(record.worker->pid);
    inner["local_rank"] = {local};
    inner["role_rank"] = {assignment_.base_role_rank + local};
    inner["role_world_size"] = {assignment_.role_world_size};
    inner["exit_code"] = ordered_json::array({nullptr});
    inner["worker_pid"] = ordered_json::array({nullptr});
  }
  if (record.failure != nullptr) {
    inner["exit_code"] = {record.failure->exit_code};
    inner["worker_pid"] = {record.failure->pid};
    body["raw_error"] = dump_json(raw_error(*record.failure));
  }
  if (!record.error.empty()) body["raw_error"] = record.error;
  body["metadata"] = dump_json(inner);
  body["agent_restarts"] = restarts_;
  body["duration_ms"] = nullptr;
  if (record.took) body["duration_ms"] = to_ms(*record.took);
  log::plain(
      dump_json(ordered_json{{"name", std::string("torchelastic.worker.status.") + record.state},
                             {"source", record.worker == nullptr ? "AGENT" : "WORKER"},
                             {"timestamp", 0},
                             {"metadata", body}}) +
      "\n");
}

}  // namespace cpprun
