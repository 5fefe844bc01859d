#include "agent/daemon/events/event_recorder.hpp"

#include <unistd.h>

#include <utility>

#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/signals.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {
namespace {

std::string file_in(const std::string& run_folder) {
  return run_folder.empty() ? "" : run_folder + "/events.jsonl";
}

bool is_about_a_node(control::StopCause cause) {
  using control::StopCause;
  return cause == StopCause::NodeLost || cause == StopCause::NodeLeft || cause == StopCause::Growth;
}

}  // namespace

EventRecorder::EventRecorder(const AgentConfig& config, std::string node,
                             const std::string& run_folder)
    : config_(config),
      node_(std::move(node)),
      run_folder_(run_folder),
      log_(file_in(run_folder)),
      torch_(config, node_) {}

event_json::Stamp EventRecorder::now() const { return {wall_now(), boot_now(), node_}; }

void EventRecorder::run_started() {
  log_.write(event_json::run_started(now(), config_, ::getpid()));
  torch_.waits_for_round(boot_now());
  take_start_times();
}

void EventRecorder::take_start_times() {
  const StartTimes& times = start_times_;
  if (times.main_at == Instant{}) return phases_.begin(boot_now());
  phases_.begin(times.main_at - times.exec);
  phases_.reach("exec", times.main_at);
  phases_.reach("options", times.options);
  phases_.reach("prepare", times.prepared);
  phases_.reach("listen", times.listening);
}

void EventRecorder::on_message(const control::CoordinatorMessage& message) {
  std::visit([this](const auto& m) { on(m); }, message);
}

void EventRecorder::on(const control::Registered&) {
  if (round_ == RoundNumber()) phases_.reach("join", boot_now());
}

void EventRecorder::on(const control::Wait& message) {
  if (std::exchange(waiting_reason_, message.why) == message.why) return;
  log_.write(event_json::waiting(now(), message));
}

void EventRecorder::on(const control::RankAssignment& message) {
  phases_.reach(round_ == RoundNumber() ? "world" : "form", boot_now());
  torch_.round_formed(boot_now(), message);
  round_ = message.round;
  is_fetching_ = message.resume && !message.resume->source_address.empty();
  waiting_reason_.clear();
  const event_json::Stamp stamp = now();
  std::string lines = event_json::round_formed(stamp, message);
  if (message.resume) lines += event_json::snapshot_chosen(stamp, message);
  log_.write(lines);
}

void EventRecorder::on(const control::Stop& message) {
  if (message.round != round_) return;
  if (is_about_a_node(message.cause) && is_running_ && !is_stopping_) {
    log_.write(event_json::node_event(now(), message));
  }
  begin_stop(control::name_of(message.cause), message.why);
}

void EventRecorder::on(const control::JobResult& message) {
  log_.write(event_json::job_result(now(), message));
  begin_stop("job_result", "the job is over");
}

void EventRecorder::on_signal(int signal) {
  begin_stop("signal", "the agent got " + signal_name(signal));
}

void EventRecorder::starting() {
  started_.clear();  // lines of a start that failed
  if (is_fetching_) phases_.reach("fetch", boot_now());
}

void EventRecorder::worker_started(LocalRank local_rank, Rank rank, int pid) {
  if (started_.empty()) phases_.reach("spawn_first", boot_now());
  torch_.worker_started(local_rank, pid);
  started_ += event_json::worker_started(now(), round_, {rank, local_rank, pid});
}

void EventRecorder::round_started() {
  is_running_ = true;
  is_stopping_ = false;
  stop_reported_at_.reset();
  failed_at_.reset();
  newest_snapshot_ = 0;
  ready_ = 0;
  workers_ = static_cast<size_t>(config_.workers.nproc);
  spawned_at_ = boot_now();
  phases_.reach("spawn_last", spawned_at_);
  log_.write(std::exchange(started_, "") + event_json::round_started(now(), round_, workers_));
  torch_.round_started();
  startup_progress_.begin(workers_);
  write_timing("spawn");
}

void EventRecorder::write_timing(const char* until) {
  if (!phases_.is_open()) return;
  log_.write(event_json::timing(now(), round_, cause_, until, phases_));
  if (!config_.shows_timing) return;
  const std::string what = cause_ == "start" ? cause_ : "recovery (" + cause_ + ")";
  log::plain("timing: " + agent::timings_text(what, phases_) + "\n");
}

void EventRecorder::worker_connected(LocalRank local_rank) {
  startup_progress_.connected(local_rank, boot_now());
}

void EventRecorder::worker_resumed(LocalRank local_rank) {
  startup_progress_.loaded(local_rank, boot_now());
}

// Ends the measurement: after the first step the workers train.
void EventRecorder::worker_stepped(LocalRank local_rank) {
  if (!startup_progress_.stepped(local_rank) || !is_running_ || is_stopping_) return;
  if (startup_progress_.connected_at()) phases_.reach("import", *startup_progress_.connected_at());
  if (startup_progress_.loaded_at()) phases_.reach("load", *startup_progress_.loaded_at());
  phases_.reach("first_step", boot_now());
  write_timing("first_step");
  phases_.end();
}

void EventRecorder::worker_ready(LocalRank local_rank) {
  startup_progress_.loaded(local_rank, boot_now());
  std::string lines = event_json::worker_ready(now(), round_, local_rank);
  if (++ready_ == workers_) {
    lines += event_json::round_ready(now(), round_, boot_now() - spawned_at_);
  }
  log_.write(lines);
}

// Workers may repeat a step; only a new step is an event.
void EventRecorder::snapshot_complete(LocalRank local_rank, int64_t step, const std::string& path) {
  if (step <= newest_snapshot_) return;
  newest_snapshot_ = step;
  log_.write(event_json::snapshot_complete(now(), local_rank, step, path));
}

void EventRecorder::worker_exited(const WorkerExit& end) {
  if (!end.is_success() && !failed_at_) failed_at_ = end.ended_at;
  log_.write(event_json::worker_exited(node_, round_, end));
  torch_.worker_exited(end);
}

void EventRecorder::first_failure(const std::string& text) { begin_stop("failure", text); }

void EventRecorder::stopping() {
  if (stop_reported_at_) return;
  stop_reported_at_ = now();
  phases_.begin(failed_at_.value_or(stop_reported_at_->at));
  phases_.reach("detect", stop_reported_at_->at);
}

// Writes round_stopping once per round, with the first cause.
void EventRecorder::begin_stop(const std::string& cause, const std::string& why) {
  if (!is_running_ || std::exchange(is_stopping_, true)) return;
  cause_ = cause;
  log_.write(event_json::round_stopping(stop_reported_at_.value_or(now()), round_, cause, why));
}

void EventRecorder::workers_gone() {
  if (!is_running_) return;
  // Only an expired worker lease stops the workers without a cause.
  if (stop_reported_at_) begin_stop("worker_lease", "the coordinator has not answered in time");
  is_running_ = false;
  phases_.reach("stop", boot_now());
  torch_.waits_for_round(boot_now());
  log_.write(event_json::round_stopped(now(), round_));
}

void EventRecorder::warning(const std::string& text) {
  log_.write(event_json::warning(now(), text));
}

void EventRecorder::failure_summary(const Failure& failure, const std::string& text) {
  keep_failure_summary(event_json::failure_summary(now(), failure, text));
}

void EventRecorder::lost_node(const agent::Finish& finish) {
  keep_failure_summary(event_json::lost_node(now(), finish, config_.max_restarts));
}

void EventRecorder::keep_failure_summary(const std::string& line) {
  log_.write(line);
  const std::string path = run_folder_ + "/failure_summary.json";
  if (!run_folder_.empty() && !write_file(path, line)) log::warning(path + " could not be written");
}

void EventRecorder::finished(const agent::Finish& finish, int exit_code) {
  log_.write(event_json::finished(now(), finish, exit_code));
  torch_.finished(boot_now(), finish);
}

}  // namespace cpprun
