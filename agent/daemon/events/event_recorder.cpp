#include "agent/daemon/events/event_recorder.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "agent/core/restart_budget.hpp"
#include "agent/core/stop_texts.hpp"
#include "common/json.hpp"
#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "common/version.hpp"

namespace cpprun {
namespace {

using nlohmann::ordered_json;

std::string file_in(const std::string& run_folder) {
  return run_folder.empty() ? "" : run_folder + "/events.jsonl";
}

bool is_about_a_node(control::StopCause cause) {
  using control::StopCause;
  return cause == StopCause::NodeLost || cause == StopCause::NodeLeft || cause == StopCause::Growth;
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

// The causes of a stop that count as failures of the job.
constexpr std::array<std::string_view, 4> kFailures{"failure", "node_lost", "snapshot",
                                                    "worker_lease"};

double milliseconds(Duration duration) {
  constexpr double kSteps = 1000;  // to the microsecond
  return std::round(to_seconds(duration) * 1e3 * kSteps) / kSteps;
}

ordered_json json_of(const Goodput& goodput) {
  ordered_json spent = ordered_json::object();
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    spent[name_of(static_cast<GoodputPhase>(i))] = milliseconds(goodput.spent[i]);
  }
  return {{"total_ms", milliseconds(goodput.total())},
          {"spent_ms", spent},
          {"failures", goodput.failures},
          {"restarts", goodput.restarts},
          {"share", json_or_null<ordered_json>(goodput.share())}};
}

void add_exit(const WorkerExit& end, ordered_json& fields) {
  fields["rank"] = end.rank.value;
  fields["local_rank"] = end.local_rank.value;
  fields["pid"] = end.pid;
  fields["exit_code"] = end.exit_code;
  if (end.signal() != 0) fields["signal"] = signal_name(end.signal());
  if (end.step >= 0) fields["step"] = end.step;
  fields["has_core"] = end.has_core;
  fields["is_oom_kill"] = end.is_oom_kill;
}

}  // namespace

EventRecorder::EventRecorder(boost::asio::io_context& loop, const AgentConfig& config,
                             std::string node, const std::string& run_folder, IoThread& io,
                             const bool& hosts_coordinator)
    : config_(config),
      node_(std::move(node)),
      run_folder_(run_folder),
      io_(io),
      log_(loop, file_in(run_folder), io),
      torch_(config, node_),
      trace_(config, node_, hosts_coordinator) {}

EventRecorder::Stamp EventRecorder::now() { return {wall_now(), boot_now()}; }

std::string EventRecorder::line(const Stamp& stamp, const char* event,
                                const ordered_json& fields) const {
  ordered_json object{{"time_us", stamp.wall.microseconds},
                      {"mono_ns", stamp.at.nanoseconds()},
                      {"node", node_},
                      {"event", event}};
  object.update(fields);
  return dump_json(object) + "\n";
}

void EventRecorder::write(const char* event, const ordered_json& fields) {
  log_.write(line(now(), event, fields));
}

void EventRecorder::run_started() {
  ordered_json fields{{"version", version()},
                      {"run_id", config_.rendezvous.run_id},
                      {"pid", ::getpid()},
                      {"nproc", config_.workers.nproc},
                      {"min_nodes", config_.rendezvous.min_nodes},
                      {"max_nodes", config_.rendezvous.max_nodes},
                      {"max_restarts", config_.max_restarts},
                      {"program", config_.workers.title}};
  if (config_.max_hangs) fields["max_hangs"] = *config_.max_hangs;
  if (config_.max_node_losses) fields["max_node_losses"] = *config_.max_node_losses;
  write("run_started", fields);
  torch_.waits_for_round(boot_now());
  take_start_times();
}

void EventRecorder::take_start_times() {
  const StartTimes& times = start_times_;
  const bool is_measured = times.main_at != Instant{};
  const Instant begun_at = is_measured ? times.main_at - times.exec : boot_now();
  phases_.begin(begun_at);
  trace_.begin(begun_at);
  goodput_.begin(begun_at);
  goodput_.wait(is_measured ? times.listening : begun_at);
  if (!is_measured) return;
  phases_.reach("exec", times.main_at);
  phases_.reach("options", times.options);
  phases_.reach("prepare", times.prepared);
  phases_.reach("listen", times.listening);
}

void EventRecorder::on_message(const control::CoordinatorMessage& message) {
  std::visit([this](const auto& m) { on(m); }, message);
}

void EventRecorder::on(const control::Registered& message) {
  takes_time_spent_ = message.takes_time_spent;
  if (round_ == RoundNumber()) phases_.reach("join", boot_now());
}

void EventRecorder::on(const control::Wait& message) {
  set_excluded(message.is_excluded, message.why);
  if (message.is_spare) is_left_out_ = true;
  if (std::exchange(waiting_reason_, message.why) == message.why) return;
  ordered_json fields{{"why", message.why}, {"is_spare", message.is_spare}};
  if (message.delay > Duration{}) fields["delay_ms"] = milliseconds(message.delay);
  write("waiting", fields);
}

void EventRecorder::set_excluded(bool is_excluded, const std::string& why) {
  if (std::exchange(is_excluded_, is_excluded) == is_excluded) return;
  write(is_excluded ? "host_excluded" : "host_readmitted", {{"host", node_}, {"why", why}});
}

void EventRecorder::node_checked(const std::string& why, Duration took) {
  write("node_check", {{"is_passed", why.empty()}, {"why", why}, {"took_ms", milliseconds(took)}});
}

void EventRecorder::on(const control::RankAssignment& message) {
  set_excluded(false, "");
  phases_.reach(round_ == RoundNumber() ? "world" : "form", boot_now());
  const control::PastFailures past = message.past_failures.value_or(control::PastFailures());
  goodput_.form(boot_now(), past.best_step);
  torch_.round_formed(boot_now(), message);
  trace_.on_round(message);
  round_ = message.round;
  group_rank_ = message.group_rank;
  is_left_out_ = false;
  is_fetching_ = message.resume && !message.resume->source_address.empty();
  waiting_reason_.clear();
  ordered_json fields{{"round", message.round.value},
                      {"restart_count", message.restart_count},
                      {"admin_restarts", message.admin_restarts},
                      {"max_restarts", message.max_restarts},
                      {"group_rank", message.group_rank},
                      {"group_size", message.group_size},
                      {"base_rank", message.base_rank},
                      {"world_size", message.world_size},
                      {"master_addr", message.master_addr},
                      {"master_port", message.master_port}};
  if (message.hang_restarts > 0 || config_.max_hangs) {
    fields["hang_restarts"] = message.hang_restarts;
    fields["max_hangs"] = agent::max_hangs(message);
  }
  const control::ClassBudgets budgets = class_budgets(message);
  if (budgets.max_node_losses >= 0) {
    fields["node_losses"] = budgets.node_losses;
    fields["max_node_losses"] = budgets.max_node_losses;
  }
  write("round_formed", fields);
  if (!message.resume) return;
  write("snapshot_chosen", {{"round", message.round.value},
                            {"step", message.resume->snapshot.step},
                            {"id", message.resume->snapshot.id},
                            {"fetched_from", message.resume->source_address}});
}

void EventRecorder::on(const control::Stop& message) {
  if (message.round != round_) return;
  if (is_about_a_node(message.cause) && is_running_ && !is_stopping_) {
    const bool is_growth = message.cause == control::StopCause::Growth;
    write(is_growth ? "node_joined" : "node_lost", {{"round", message.round.value},
                                                    {"how", control::name_of(message.cause)},
                                                    {"why", message.why}});
  }
  begin_stop(control::name_of(message.cause), message.why);
}

void EventRecorder::on(const control::SlowRank& message) {
  write(message.is_slow ? "slow_rank" : "slow_rank_over", {{"round", message.round.value},
                                                           {"rank", message.rank},
                                                           {"compute_us", message.compute_us},
                                                           {"median_us", message.median_us},
                                                           {"action", message.action}});
}

void EventRecorder::on(const control::JobResult& message) {
  write("job_result", {{"is_success", message.is_success},
                       {"is_resumable", message.is_resumable},
                       {"failure_summary", message.failure_summary}});
  begin_stop("job_result", "the job is over");
}

void EventRecorder::on_signal(int signal) {
  begin_stop("signal", "the agent got " + signal_name(signal));
}

void EventRecorder::starting() {
  if (is_fetching_) phases_.reach("fetch", boot_now());
}

void EventRecorder::preloaded() { phases_.reach("preload", boot_now()); }

void EventRecorder::spawning() {
  is_running_ = true;
  is_stopping_ = has_spawned_ = false;
  stop_reported_at_.reset();
  failed_at_.reset();
  newest_snapshot_ = 0;
  ready_ = 0;
  kept_ = 0;
  workers_ = static_cast<size_t>(config_.workers.nproc);
  spawned_at_ = boot_now();
  startup_progress_.begin(workers_);
}

void EventRecorder::worker_started(LocalRank local_rank, Rank rank, int pid,
                                   std::optional<SpawnReason> reason) {
  if (!std::exchange(has_spawned_, true)) phases_.reach("spawn_first", boot_now());
  torch_.worker_started(local_rank, pid);
  ordered_json fields{{"round", round_.value},
                      {"rank", rank.value},
                      {"local_rank", local_rank.value},
                      {"pid", pid},
                      {"is_forked", !reason}};
  if (reason && *reason != SpawnReason::NoPreload) fields["spawned_because"] = name_of(*reason);
  started_ += line(now(), "worker_started", fields);
}

void EventRecorder::worker_kept(LocalRank local_rank, Rank rank, int pid, int64_t step) {
  torch_.worker_started(local_rank, pid);
  ++kept_;
  started_ += line(now(), "worker_kept",
                   {{"round", round_.value},
                    {"rank", rank.value},
                    {"local_rank", local_rank.value},
                    {"pid", pid},
                    {"step", step}});
}

void EventRecorder::round_started(const WorkerStarts& starts) {
  spawned_at_ = boot_now();
  phases_.reach("spawn_last", spawned_at_);
  goodput_.run(spawned_at_);
  log_.write(std::exchange(started_, "") + line(now(), "round_started", round_fields(starts)));
  torch_.round_started();
  write_timing("spawn");
  if (std::exchange(regroups_, false)) {
    log::status(agent::regrouped_text(round_, kept_, static_cast<int64_t>(workers_) - kept_));
  }
  const int64_t forked = starts.forked - std::exchange(forked_, starts.forked);
  if (forked == 0 || !config_.shows_timing) return;
  constexpr int64_t kMebibyte = 1 << 20;
  log::plain("timing: " + std::to_string(forked) + " of " + text::count(workers_, "worker") +
             " forked: each saves an import of " + text::seconds(starts.import_time, 2) +
             " and shares " + std::to_string(starts.shared_bytes / kMebibyte) + " MiB\n");
}

ordered_json EventRecorder::round_fields(const WorkerStarts& starts) const {
  ordered_json fields{{"round", round_.value}, {"workers", workers_}, {"kept", kept_}};
  fields["forked"] = starts.forked - forked_;
  if (starts.forked == forked_) return fields;
  fields["import_saved_ms"] = milliseconds(starts.import_time);
  fields["shared_bytes"] = starts.shared_bytes;
  return fields;
}

void EventRecorder::start_failed() {
  is_running_ = false;
  goodput_.wait(boot_now());
  started_.clear();
}

void EventRecorder::write_timing(const char* until) {
  if (!phases_.is_open()) return;
  ordered_json each = ordered_json::object();
  for (const agent::Phase& phase : phases_.all()) each[phase.name] = milliseconds(phase.took);
  write("timing", {{"round", round_.value},
                   {"cause", cause_},
                   {"until", until},
                   {"total_ms", milliseconds(phases_.total())},
                   {"phases_ms", each}});
  trace_.on_timing(cause_, phases_, std::string_view(until) == "first_step");
  if (!config_.shows_timing) return;
  const std::string what = cause_ == "start" ? cause_ : "recovery (" + cause_ + ")";
  log::plain("timing: " + agent::timings_text(what, phases_) + "\n");
}

void EventRecorder::on_milestone(LocalRank local_rank, WorkerMilestone milestone, int64_t step) {
  switch (milestone) {
    case WorkerMilestone::Connected:
      goodput_.connect(boot_now());
      startup_progress_.connected(local_rank, boot_now());
      break;
    case WorkerMilestone::Resumed: startup_progress_.loaded(local_rank, boot_now()); break;
    case WorkerMilestone::Stepped:
      goodput_.step(boot_now(), step);
      if (startup_progress_.stepped(local_rank)) end_timing();
      break;
    case WorkerMilestone::EndedBeforeStep: goodput_.expect_steps(); break;
  }
}

// All workers have made their first step: from now on they train.
void EventRecorder::end_timing() {
  if (!is_running_ || is_stopping_) return;
  if (startup_progress_.connected_at()) phases_.reach("import", *startup_progress_.connected_at());
  if (startup_progress_.loaded_at()) phases_.reach("load", *startup_progress_.loaded_at());
  phases_.reach("first_step", boot_now());
  write_timing("first_step");
  phases_.end();
}

void EventRecorder::worker_ready(LocalRank local_rank) {
  startup_progress_.loaded(local_rank, boot_now());
  write_started();
  write("worker_ready", {{"round", round_.value}, {"local_rank", local_rank.value}});
  if (++ready_ != workers_) return;
  const Duration after = boot_now() - spawned_at_;
  write("round_ready", {{"round", round_.value}, {"after_ms", milliseconds(after)}});
}

// Workers may repeat a step; only a new step is an event.
void EventRecorder::snapshot_complete(LocalRank local_rank, int64_t step, const std::string& path) {
  if (step <= newest_snapshot_) return;
  newest_snapshot_ = step;
  write("snapshot_complete", {{"local_rank", local_rank.value}, {"step", step}, {"path", path}});
}

void EventRecorder::worker_exited(const WorkerExit& end) {
  if (!end.is_success() && !failed_at_) failed_at_ = end.ended_at;
  write_started();
  ordered_json fields{{"round", round_.value}};
  add_exit(end, fields);
  fields["is_stopped_by_us"] = end.is_stopped_by_us;
  fields["lived_ms"] = lived(end) / std::chrono::milliseconds(1);
  if (!end.is_success()) fields["class"] = name_of(classify(end));
  if (end.error) {
    fields["error"] = end.error->message;
    fields["is_consequence"] = is_consequence(end);
  }
  log_.write(line({end.ended_at_wall, end.ended_at}, "worker_exited", fields));
  torch_.worker_exited(end);
}

void EventRecorder::first_failure(const std::string& text) { begin_stop("failure", text); }

void EventRecorder::stopping(bool regroups) {
  regroups_ = regroups_ || regroups;
  if (stop_reported_at_) return;
  stop_reported_at_ = now();
  trace_.on_stop_begins();
  phases_.begin(failed_at_.value_or(stop_reported_at_->at));
  phases_.reach("detect", stop_reported_at_->at);
  goodput_.stop(failed_at_.value_or(stop_reported_at_->at));
}

// Writes round_stopping once per round, with the first cause.
void EventRecorder::begin_stop(const std::string& cause, const std::string& why) {
  if (!is_running_ || std::exchange(is_stopping_, true)) return;
  cause_ = cause;
  const bool is_failure = std::ranges::count(kFailures, cause) > 0;
  if (is_failure) goodput_.fail();
  trace_.on_stop(cause, why, is_failure);
  write_started();
  log_.write(line(stop_reported_at_.value_or(now()), "round_stopping",
                  {{"round", round_.value}, {"cause", cause}, {"why", why}}));
}

void EventRecorder::workers_gone(bool are_some_held) {
  if (!is_running_) return;
  // Only an expired worker lease stops the workers without a cause.
  if (stop_reported_at_) begin_stop("worker_lease", "the coordinator has not answered in time");
  is_running_ = false;
  phases_.reach("stop", boot_now());
  goodput_.leave(boot_now());
  torch_.waits_for_round(boot_now());
  trace_.on_round_over();
  ordered_json fields{{"round", round_.value}};
  if (are_some_held) fields["regroups"] = true;
  write("round_stopped", fields);
  log_.write(goodput_event() + "\n");
}

ordered_json EventRecorder::goodput_fields(Instant at) const {
  const Goodput goodput = goodput_.at(at);
  ordered_json fields{{"round", round_.value}};
  fields.update(json_of(goodput));
  fields["best_step"] = goodput_.best_step();
  fields["submissions"] = goodput.submissions;
  if (goodput.submissions > 1) fields["this_submission"] = json_of(goodput_.own(at));
  return fields;
}

std::string EventRecorder::goodput_event() const {
  const Stamp stamp = now();
  std::string text = line(stamp, "goodput", goodput_fields(stamp.at));
  text.pop_back();
  return text;
}

void EventRecorder::warning(const std::string& text) { write("warning", {{"text", text}}); }

void EventRecorder::failure_summary(const Failure& failure, const std::string& text) {
  const RootCause& root_cause = failure.root_cause;
  const WorkerExit& end = root_cause.end;
  ordered_json fields{{"run_id", config_.rendezvous.run_id},
                      {"class", name_of(class_of(root_cause))},
                      {"failed_on", root_cause.node}};
  if (root_cause.why.empty()) {
    add_exit(end, fields);
    fields["failed_at_us"] = end.ended_at_wall.microseconds;
    fields["lived_ms"] = lived(end) / std::chrono::milliseconds(1);
    fields["error"] = error_text(end);
    fields["last_lines"] = end.last_lines;
    fields["world_size"] = failure.world_size;
  } else {
    fields["why"] = root_cause.why;
  }
  const Hint* hint = hint_for(root_cause);
  fields["hint"] = hint == nullptr ? "" : std::string(hint->id);
  fields["restarts_used"] = failure.restarts_used;
  fields["admin_restarts"] = failure.admin_restarts;
  fields["max_restarts"] = failure.max_restarts;
  if (failure.max_hangs) fields["max_hangs"] = *failure.max_hangs;
  fields["same_startup_failures"] = failure.same_startup_failures;
  fields["same_failures"] = failure.same_failures;
  if (!failure.why_no_retry.empty()) fields["why_no_retry"] = failure.why_no_retry;
  fields["text"] = text;
  keep_failure_summary(fields);
}

void EventRecorder::lost_node(const agent::Finish& finish) {
  keep_failure_summary({{"run_id", config_.rendezvous.run_id},
                        {"class", name_of(FailureClass::LostNode)},
                        {"why", finish.lost},
                        {"hint", ""},
                        {"restarts_used", finish.restarts_used},
                        {"max_restarts", config_.max_restarts},
                        {"text", finish.text}});
}

void EventRecorder::keep_failure_summary(const ordered_json& fields) {
  const std::string text = line(now(), "failure_summary", fields);
  log_.write(text);
  summary_ = text.substr(0, text.size() - 1);
  if (run_folder_.empty()) return;
  const std::string path = run_folder_ + "/failure_summary.json";
  const auto written =
      io_.result_of([path, text] { return write_file(path, text); }, limits::kIoEndTimeout);
  if (!written.value_or(false)) log::warning(path + " could not be written");
}

void EventRecorder::finished(const agent::Finish& finish, int exit_code, bool job_continues) {
  ordered_json fields{{"outcome", name_of(finish.how)},
                      {"exit_code", exit_code},
                      {"restarts_used", finish.restarts_used}};
  if (!finish.text.empty()) fields["text"] = finish.text;
  log_.write(goodput_event() + "\n");
  write("finished", fields);
  torch_.finished(boot_now(), finish);
  trace_.finished(finish, exit_code, job_continues);
}

}  // namespace cpprun
