#include "agent/daemon/events/recorder.hpp"

#include <unistd.h>

#include <utility>

#include "agent/process/clock.hpp"
#include "common/log/log.hpp"
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

Recorder::Recorder(const AgentConfig& config, std::string node, const std::string& run_folder)
    : config_(config),
      node_(std::move(node)),
      run_folder_(run_folder),
      log_(file_in(run_folder)),
      torch_(config, node_) {}

json_lines::Stamp Recorder::now() const {
  return {wall_now(), boot_now(), node_};
}

void Recorder::run_started() {
  log_.write(json_lines::run_started(now(), config_, ::getpid()));
  torch_.waits_for_round(boot_now());
  take_start_times();
}

// What the launcher has measured until here.
void Recorder::take_start_times() {
  const StartTimes& times = start_times_;
  if (times.main_at == Instant{}) return phases_.begin(boot_now());
  phases_.begin(times.main_at - times.exec);
  phases_.reach("exec", times.main_at);
  phases_.reach("options", times.options);
  phases_.reach("prepare", times.prepared);
  phases_.reach("listen", times.listening);
}

void Recorder::on_message(const control::CoordinatorMessage& message) {
  std::visit([this](const auto& m) { on(m); }, message);
}

void Recorder::on(const control::Welcome&) {
  if (round_ == RoundNumber()) phases_.reach("join", boot_now());
}

void Recorder::on(const control::Wait& message) {
  if (std::exchange(waits_for_, message.why) == message.why) return;
  log_.write(json_lines::waiting(now(), message));
}

void Recorder::on(const control::World& message) {
  phases_.reach(round_ == RoundNumber() ? "world" : "form", boot_now());
  torch_.round_formed(boot_now(), message);
  round_ = message.round;
  is_fetching_ = message.resume && !message.resume->source_address.empty();
  waits_for_.clear();
  const json_lines::Stamp stamp = now();
  std::string lines = json_lines::round_formed(stamp, message);
  if (message.resume) lines += json_lines::snapshot_chosen(stamp, message);
  log_.write(lines);
}

void Recorder::on(const control::Stop& message) {
  if (message.round != round_) return;
  if (is_about_a_node(message.cause) && is_running_ && !is_stopping_) {
    log_.write(json_lines::node_event(now(), message));
  }
  stops(control::name_of(message.cause), message.why);
}

void Recorder::on(const control::Decided& message) {
  log_.write(json_lines::decided(now(), message));
  stops("decided", "the job is over");
}

void Recorder::on_signal(int signal) {
  stops("signal", "the agent got " + signal_name(signal));
}

void Recorder::starting() {
  started_.clear();  // of a start that failed
  if (is_fetching_) phases_.reach("fetch", boot_now());
}

void Recorder::worker_started(LocalRank local_rank, Rank rank, int pid) {
  if (started_.empty()) phases_.reach("spawn_first", boot_now());
  torch_.worker_started(local_rank, pid);
  started_ += json_lines::worker_started(now(), round_, {rank, local_rank, pid});
}

void Recorder::round_started() {
  is_running_ = true;
  is_stopping_ = false;
  told_to_stop_.reset();
  failed_at_.reset();
  newest_snapshot_ = 0;
  ready_ = 0;
  workers_ = static_cast<size_t>(config_.workers.nproc);
  spawned_at_ = boot_now();
  phases_.reach("spawn_last", spawned_at_);
  log_.write(std::exchange(started_, "") + json_lines::round_started(now(), round_, workers_));
  torch_.round_started();
  warm_up_.begin(workers_);
  tell_timing("spawn");
}

void Recorder::tell_timing(const char* until) {
  if (!phases_.is_open()) return;
  log_.write(json_lines::timing(now(), round_, cause_, until, phases_));
  if (!config_.shows_timing) return;
  const std::string what = cause_ == "start" ? cause_ : "recovery (" + cause_ + ")";
  log::plain("timing: " + agent::phases_text(what, phases_) + "\n");
}

void Recorder::worker_connected(LocalRank local_rank) {
  warm_up_.connected(local_rank, boot_now());
}

void Recorder::worker_resumed(LocalRank local_rank) {
  warm_up_.loaded(local_rank, boot_now());
}

// The end of the account: what comes now is training.
void Recorder::worker_stepped(LocalRank local_rank) {
  if (!warm_up_.stepped(local_rank) || !is_running_ || is_stopping_) return;
  if (warm_up_.connected_at()) phases_.reach("import", *warm_up_.connected_at());
  if (warm_up_.loaded_at()) phases_.reach("load", *warm_up_.loaded_at());
  phases_.reach("first_step", boot_now());
  tell_timing("first_step");
  phases_.end();
}

void Recorder::worker_ready(LocalRank local_rank) {
  warm_up_.loaded(local_rank, boot_now());
  std::string lines = json_lines::worker_ready(now(), round_, local_rank);
  if (++ready_ == workers_) {
    lines += json_lines::round_ready(now(), round_, boot_now() - spawned_at_);
  }
  log_.write(lines);
}

// A worker may say one step again and again; only news is written.
void Recorder::snapshot_complete(LocalRank local_rank, int64_t step, const std::string& path) {
  if (step <= newest_snapshot_) return;
  newest_snapshot_ = step;
  log_.write(json_lines::snapshot_complete(now(), local_rank, step, path));
}

void Recorder::worker_ended(const WorkerEnd& end) {
  if (!end.is_success() && !failed_at_) failed_at_ = end.ended_at;
  log_.write(json_lines::worker_ended(node_, round_, end));
  torch_.worker_ended(end);
}

void Recorder::first_failure(const std::string& text) {
  stops("failure", text);
}

void Recorder::stopping() {
  if (told_to_stop_) return;
  told_to_stop_ = now();
  phases_.begin(failed_at_.value_or(told_to_stop_->at));
  phases_.reach("detect", told_to_stop_->at);
}

// Once a round: the first reason is why.
void Recorder::stops(const std::string& cause, const std::string& why) {
  if (!is_running_ || std::exchange(is_stopping_, true)) return;
  cause_ = cause;
  log_.write(json_lines::round_stopping(told_to_stop_.value_or(now()), round_, cause, why));
}

void Recorder::quiet() {
  if (!is_running_) return;
  // Nobody but our own grant tells us to stop without a word.
  if (told_to_stop_) stops("grant", "the coordinator has not answered in time");
  is_running_ = false;
  phases_.reach("stop", boot_now());
  torch_.waits_for_round(boot_now());
  log_.write(json_lines::round_stopped(now(), round_));
}

void Recorder::warning(const std::string& text) {
  log_.write(json_lines::warning(now(), text));
}

void Recorder::verdict(const Failure& failure, const std::string& text) {
  keep_verdict(json_lines::verdict(now(), failure, text));
}

void Recorder::lost_node(const agent::Finish& finish) {
  keep_verdict(json_lines::lost_node(now(), finish, config_.max_restarts));
}

void Recorder::keep_verdict(const std::string& line) {
  log_.write(line);
  if (!run_folder_.empty()) json_lines::write_file(run_folder_ + "/verdict.json", line);
}

void Recorder::finished(const agent::Finish& finish, int exit_code) {
  log_.write(json_lines::finished(now(), finish, exit_code));
  torch_.finished(boot_now(), finish);
}

}  // namespace cpprun
