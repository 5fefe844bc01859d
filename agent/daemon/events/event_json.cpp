#include "agent/daemon/events/event_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "agent/core/config.hpp"
#include "common/json.hpp"
#include "common/log/log.hpp"
#include "common/machine/files.hpp"
#include "common/signals.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::event_json {
namespace {

using nlohmann::ordered_json;

std::string line(const ordered_json& object) { return dump_json(object) + "\n"; }

ordered_json begin(const Stamp& stamp, const char* event) {
  return {{"time_us", stamp.wall.microseconds},
          {"mono_ns", stamp.at.nanoseconds()},
          {"node", stamp.node},
          {"event", event}};
}

const char* name_of(agent::Finish::How how) {
  switch (how) {
    case agent::Finish::How::Success: return "success";
    case agent::Finish::How::Failure: return "failure";
    case agent::Finish::How::Error: return "error";
    case agent::Finish::How::Signal: return "signal";
    case agent::Finish::How::Stopped: return "stopped";
    case agent::Finish::How::Unusable: return "unusable";
  }
  return "unknown";
}

double milliseconds(Duration duration) {
  constexpr double kSteps = 1000;  // to the microsecond
  return std::round(to_seconds(duration) * 1e3 * kSteps) / kSteps;
}

// Bounds the recursion of nlohmann's writer; the input is untrusted.
bool is_shallow(const std::string& bytes) {
  constexpr int kDepthMax = 64;
  int depth = 0;
  for (char c : bytes) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDepthMax) return false;
  }
  return true;
}

ordered_json parse_if_shallow(const std::string& bytes) {
  return is_shallow(bytes) ? ordered_json::parse(bytes, nullptr, false) : ordered_json(nullptr);
}

void add_exit(const WorkerExit& end, ordered_json& object) {
  object["rank"] = end.rank.value;
  object["local_rank"] = end.local_rank.value;
  object["pid"] = end.pid;
  object["exit_code"] = end.exit_code;
  if (end.signal() != 0) object["signal"] = signal_name(end.signal());
  object["has_core"] = end.has_core;
  object["is_oom_kill"] = end.is_oom_kill;
}

}  // namespace

std::string run_started(const Stamp& stamp, const AgentConfig& config, int pid) {
  ordered_json object = begin(stamp, "run_started");
  object["version"] = CPPRUN_VERSION;
  object["run_id"] = config.rendezvous.run_id;
  object["pid"] = pid;
  object["nproc"] = config.workers.nproc;
  object["min_nodes"] = config.rendezvous.min_nodes;
  object["max_nodes"] = config.rendezvous.max_nodes;
  object["max_restarts"] = config.max_restarts;
  object["program"] = config.workers.title;
  return line(object);
}

std::string waiting(const Stamp& stamp, const control::Wait& message) {
  ordered_json object = begin(stamp, "waiting");
  object["why"] = message.why;
  object["is_spare"] = message.is_spare;
  return line(object);
}

std::string round_formed(const Stamp& stamp, const control::RankAssignment& assignment) {
  ordered_json object = begin(stamp, "round_formed");
  object["round"] = assignment.round.value;
  object["restart_count"] = assignment.restart_count;
  object["admin_restarts"] = assignment.admin_restarts;
  object["max_restarts"] = assignment.max_restarts;
  object["group_rank"] = assignment.group_rank;
  object["group_size"] = assignment.group_size;
  object["base_rank"] = assignment.base_rank;
  object["world_size"] = assignment.world_size;
  object["master_addr"] = assignment.master_addr;
  object["master_port"] = assignment.master_port;
  return line(object);
}

std::string snapshot_chosen(const Stamp& stamp, const control::RankAssignment& assignment) {
  ordered_json object = begin(stamp, "snapshot_chosen");
  object["round"] = assignment.round.value;
  object["step"] = assignment.resume->snapshot.step;
  object["id"] = assignment.resume->snapshot.id;
  object["fetched_from"] = assignment.resume->source_address;
  return line(object);
}

std::string worker_started(const Stamp& stamp, RoundNumber round, const Started& worker) {
  ordered_json object = begin(stamp, "worker_started");
  object["round"] = round.value;
  object["rank"] = worker.rank.value;
  object["local_rank"] = worker.local_rank.value;
  object["pid"] = worker.pid;
  return line(object);
}

std::string round_started(const Stamp& stamp, RoundNumber round, size_t workers) {
  ordered_json object = begin(stamp, "round_started");
  object["round"] = round.value;
  object["workers"] = workers;
  return line(object);
}

std::string timing(const Stamp& stamp, RoundNumber round, const std::string& cause,
                   const char* until, const agent::PhaseTimings& phases) {
  ordered_json object = begin(stamp, "timing");
  object["round"] = round.value;
  object["cause"] = cause;
  object["until"] = until;
  object["total_ms"] = milliseconds(phases.total());
  ordered_json& each = object["phases_ms"] = ordered_json::object();
  for (const agent::Phase& phase : phases.all()) each[phase.name] = milliseconds(phase.took);
  return line(object);
}

std::string worker_ready(const Stamp& stamp, RoundNumber round, LocalRank local_rank) {
  ordered_json object = begin(stamp, "worker_ready");
  object["round"] = round.value;
  object["local_rank"] = local_rank.value;
  return line(object);
}

std::string round_ready(const Stamp& stamp, RoundNumber round, Duration after) {
  ordered_json object = begin(stamp, "round_ready");
  object["round"] = round.value;
  object["after_ms"] = milliseconds(after);
  return line(object);
}

std::string snapshot_complete(const Stamp& stamp, LocalRank local_rank, int64_t step,
                              const std::string& path) {
  ordered_json object = begin(stamp, "snapshot_complete");
  object["local_rank"] = local_rank.value;
  object["step"] = step;
  object["path"] = path;
  return line(object);
}

std::string worker_exited(const std::string& node, RoundNumber round, const WorkerExit& end) {
  ordered_json object = begin({end.ended_at_wall, end.ended_at, node}, "worker_exited");
  object["round"] = round.value;
  add_exit(end, object);
  object["is_stopped_by_us"] = end.is_stopped_by_us;
  object["lived_ms"] = lived(end) / std::chrono::milliseconds(1);
  if (!end.is_success()) object["class"] = name_of(classify(end));
  if (end.error) {
    object["error"] = end.error->message;
    object["is_consequence"] = is_consequence(end);
  }
  return line(object);
}

std::string round_stopping(const Stamp& stamp, RoundNumber round, const std::string& cause,
                           const std::string& why) {
  ordered_json object = begin(stamp, "round_stopping");
  object["round"] = round.value;
  object["cause"] = cause;
  object["why"] = why;
  return line(object);
}

std::string node_event(const Stamp& stamp, const control::Stop& stop) {
  const bool is_growth = stop.cause == control::StopCause::Growth;
  ordered_json object = begin(stamp, is_growth ? "node_joined" : "node_lost");
  object["round"] = stop.round.value;
  object["how"] = name_of(stop.cause);
  object["why"] = stop.why;
  return line(object);
}

std::string round_stopped(const Stamp& stamp, RoundNumber round) {
  ordered_json object = begin(stamp, "round_stopped");
  object["round"] = round.value;
  return line(object);
}

std::string warning(const Stamp& stamp, const std::string& text) {
  ordered_json object = begin(stamp, "warning");
  object["text"] = text;
  return line(object);
}

std::string job_result(const Stamp& stamp, const control::JobResult& message) {
  ordered_json object = begin(stamp, "job_result");
  object["is_success"] = message.is_success;
  object["is_resumable"] = message.is_resumable;
  object["failure_summary"] = message.failure_summary;
  return line(object);
}

std::string failure_summary(const Stamp& stamp, const Failure& failure, const std::string& text) {
  const RootCause& root_cause = failure.root_cause;
  const WorkerExit& end = root_cause.end;
  ordered_json object = begin(stamp, "failure_summary");
  object["class"] = name_of(class_of(root_cause));
  object["failed_on"] = root_cause.node;
  if (root_cause.why.empty()) {
    add_exit(end, object);
    object["failed_at_us"] = end.ended_at_wall.microseconds;
    object["lived_ms"] = lived(end) / std::chrono::milliseconds(1);
    object["words"] = error_text(end);
    object["last_lines"] = end.last_lines;
    object["world_size"] = failure.world_size;
  } else {
    object["why"] = root_cause.why;
  }
  const Hint* hint = hint_for(root_cause);
  object["hint"] = hint == nullptr ? "" : std::string(hint->id);
  object["restarts_used"] = failure.restarts_used;
  object["admin_restarts"] = failure.admin_restarts;
  object["max_restarts"] = failure.max_restarts;
  object["same_startup_failures"] = failure.same_startup_failures;
  object["text"] = text;
  return line(object);
}

std::string lost_node(const Stamp& stamp, const agent::Finish& finish, int64_t max_restarts) {
  ordered_json object = begin(stamp, "failure_summary");
  object["class"] = name_of(FailureClass::LostNode);
  object["why"] = finish.lost;
  object["hint"] = "";
  object["restarts_used"] = finish.restarts_used;
  object["max_restarts"] = max_restarts;
  object["text"] = finish.text;
  return line(object);
}

std::string finished(const Stamp& stamp, const agent::Finish& finish, int exit_code) {
  ordered_json object = begin(stamp, "finished");
  object["outcome"] = name_of(finish.how);
  object["exit_code"] = exit_code;
  object["restarts_used"] = finish.restarts_used;
  if (!finish.text.empty()) object["text"] = finish.text;
  return line(object);
}

std::optional<agent::TimerRequest> timer_request(const std::string& text) {
  const ordered_json body = parse_if_shallow(text);
  if (!body.is_object() || !body.contains("version") || body["version"] != 1) return std::nullopt;
  const auto number = [&](const char* name) {
    return body.contains(name) && body[name].is_number() ? body[name].get<double>() : 0.0;
  };
  constexpr double kPidMax = 1 << 22;
  constexpr double kSignalMax = 64;
  agent::TimerRequest request;
  const double pid = number("pid");
  const double signal = number("signal");
  request.expires_at = number("expiration_time");
  const bool has_scope = body.contains("scope_id") && body["scope_id"].is_string();
  if (!has_scope || !(pid > 1) || pid > kPidMax || !(signal >= 0) || signal > kSignalMax) {
    return std::nullopt;
  }
  request.pid = static_cast<int>(pid);
  request.signal = static_cast<int>(signal);
  request.scope = body["scope_id"].get<std::string>();
  return request;
}

void copy_error_file(const WorkerExit& root, const std::string& to) {
  const std::string bytes = read_file(root.error->path).value_or("");
  ordered_json body = parse_if_shallow(bytes);
  bool is_nested = body.is_object() && body.contains("message") && body["message"].is_object();
  if (is_nested && root.exit_code != 0) body["message"]["errorCode"] = root.exit_code;
  if (!write_file(to, is_nested ? line(body) : bytes)) {
    log::warning("the root cause's error file could not be copied to '" + to + "'");
  }
}

}  // namespace cpprun::event_json
