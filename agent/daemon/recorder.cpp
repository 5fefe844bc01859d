#include "agent/daemon/recorder.hpp"

#include <unistd.h>

#include <utility>

#include "agent/process/clock.hpp"
#include "common/signals.hpp"

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
      log_(file_in(run_folder), config.event_log_handler == "console") {}

json_lines::Stamp Recorder::now() const {
  return {wall_now(), boot_now(), node_};
}

void Recorder::run_started() {
  log_.write(json_lines::run_started(now(), config_, ::getpid()));
}

void Recorder::on_message(const control::CoordinatorMessage& message) {
  std::visit([this](const auto& m) { on(m); }, message);
}

void Recorder::on(const control::Wait& message) {
  if (std::exchange(waits_for_, message.why) == message.why) return;
  log_.write(json_lines::waiting(now(), message));
}

void Recorder::on(const control::World& message) {
  round_ = message.round;
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
  stops(json_lines::name_of(message.cause), message.why);
}

void Recorder::on(const control::Decided& message) {
  log_.write(json_lines::decided(now(), message));
  stops("decided", "the job is over");
}

void Recorder::on_signal(int signal) {
  stops("signal", "the agent got " + signal_name(signal));
}

void Recorder::worker_started(LocalRank local_rank, Rank rank, int pid) {
  started_ += json_lines::worker_started(now(), round_, {rank, local_rank, pid});
  ++workers_;
}

void Recorder::round_started() {
  is_running_ = true;
  is_stopping_ = false;
  told_to_stop_.reset();
  newest_snapshot_ = 0;
  log_.write(std::exchange(started_, "") +
             json_lines::round_started(now(), round_, std::exchange(workers_, 0)));
}

void Recorder::worker_ready(LocalRank local_rank) {
  log_.write(json_lines::worker_ready(now(), round_, local_rank));
}

// A worker may say one step again and again; only news is written.
void Recorder::snapshot_complete(LocalRank local_rank, int64_t step, const std::string& path) {
  if (step <= newest_snapshot_) return;
  newest_snapshot_ = step;
  log_.write(json_lines::snapshot_complete(now(), local_rank, step, path));
}

void Recorder::worker_ended(const WorkerEnd& end) {
  log_.write(json_lines::worker_ended(node_, round_, end));
}

void Recorder::first_failure(const std::string& text) {
  stops("failure", text);
}

void Recorder::stopping() {
  if (!told_to_stop_) told_to_stop_ = now();
}

// Once a round: the first reason is why.
void Recorder::stops(const std::string& cause, const std::string& why) {
  if (!is_running_ || std::exchange(is_stopping_, true)) return;
  log_.write(json_lines::round_stopping(told_to_stop_.value_or(now()), round_, cause, why));
}

void Recorder::quiet() {
  if (!is_running_) return;
  // Nobody but our own grant tells us to stop without a word.
  if (told_to_stop_) stops("grant", "the coordinator has not answered in time");
  is_running_ = false;
  log_.write(json_lines::round_stopped(now(), round_));
}

void Recorder::warning(const std::string& text) {
  log_.write(json_lines::warning(now(), text));
}

void Recorder::finished(const agent::Finish& finish, int exit_code) {
  log_.write(json_lines::finished(now(), finish, exit_code));
}

}  // namespace cpprun
