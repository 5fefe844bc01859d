#include "agent/daemon/services/worker_reports.hpp"

namespace cpprun {

WorkerReports::WorkerReports(boost::asio::io_context& loop, const Callbacks& callbacks)
    : progress_(loop, {callbacks.heartbeats, callbacks.round, callbacks.send}),
      processes_(loop, {callbacks.live, callbacks.round, callbacks.files, callbacks.send}),
      tails_(loop, {callbacks.files, callbacks.round, callbacks.send, callbacks.workers}),
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
  }
}

void WorkerReports::on_round_ended() {
  progress_.on_round_ended();
  compute_.on_round_ended();
  processes_.on_round_ended();
}

void WorkerReports::on_disconnected() {
  progress_.on_disconnected();
  processes_.on_disconnected();
  tails_.on_disconnected();
  compute_.set_wanted(false);
}

}  // namespace cpprun
