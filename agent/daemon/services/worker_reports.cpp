#include "agent/daemon/services/worker_reports.hpp"

#include <utility>

namespace cpprun {

WorkerReports::WorkerReports(boost::asio::io_context& loop, const Callbacks& callbacks)
    : progress_(loop, {callbacks.heartbeats, callbacks.round, callbacks.send}),
      processes_(loop, {callbacks.live, callbacks.round, callbacks.files, callbacks.send}),
      tails_(loop, {callbacks.files, callbacks.round, callbacks.send, callbacks.workers}),
      log_files_(loop, {callbacks.files, callbacks.send, callbacks.workers}),
      compute_(loop, {callbacks.heartbeats, callbacks.round, callbacks.send}) {}

void WorkerReports::on_message(const control::CoordinatorMessage& message) {
  if (const auto* registered = std::get_if<control::Registered>(&message)) {
    compute_.set_wanted(registered->takes_compute_times);
    processes_.on_registered(registered->takes_processes);
  } else if (const auto* watch = std::get_if<control::Watch>(&message)) {
    progress_.on_watch(*watch);
    processes_.on_watch(*watch);
  } else if (const auto* tail = std::get_if<control::LogTailRequest>(&message)) {
    tails_.on_tail(*tail);
  } else if (const auto* request = std::get_if<control::LogRequest>(&message)) {
    log_files_.on_request(*request);
  }
}

void WorkerReports::before(const control::CoordinatorMessage& message, std::function<void()> then) {
  if (!std::holds_alternative<control::JobResult>(message)) return then();
  log_files_.when_read(std::move(then));
}

void WorkerReports::on_round_ended() {
  progress_.on_round_ended();
  compute_.on_round_ended();
  processes_.on_round_ended();
  log_files_.on_round_ended();
}

void WorkerReports::on_disconnected() {
  progress_.on_disconnected();
  processes_.on_disconnected();
  tails_.on_disconnected();
  log_files_.on_disconnected();
  compute_.set_wanted(false);
}

}  // namespace cpprun
