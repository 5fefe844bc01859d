// The part of ProcessHost's inside that listens to the workers' own words.
#include <algorithm>
#include <cstdio>

#include "agent/process/host_impl.hpp"
#include "agent/process/worker_look.hpp"
#include "common/limits/channel.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

std::string seconds_text(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", to_seconds(duration));
  return text;
}

// What a worker said over the channel stands in for the error file that it has not written. No
// stamp: it counts at the worker's end.
ErrorReport report_of(const std::string& words) {
  ErrorReport report;
  report.message = words.substr(0, words.find('\n'));
  if (report.message.size() != words.size()) report.traceback = words;
  report.file_time = wall_now();
  return report;
}

}  // namespace

void ProcessHost::Impl::open_channel() {
  WorkerChannel::Events events;
  events.worker_of = [this](int session) -> std::optional<int> {
    const auto worker = workers_.find(session);  // each leads a session named by its pid
    if (worker == workers_.end()) return std::nullopt;
    return static_cast<int>(worker->second.local_rank().value);
  };
  events.on_ready = [this](int rank) { on_ready(rank); };
  events.on_word = events_.on_word;
  events.why_not_commit = [this] { return why_not_commit(); };
  events.on_snapshot = events_.on_snapshot;
  events.on_fell_back = events_.on_fell_back;
  events.on_strike = events_.on_strike;
  events.on_began = events_.on_began;
  channel_.emplace(loop_, options_.channel_name, std::move(events), arenas_);
  if (channel_->is_open()) return;
  channel_.reset();
  options_.channel_name.clear();
}

void ProcessHost::Impl::on_ready(int local_rank) {
  if (events_.on_ready) events_.on_ready(LocalRank(local_rank));
  if (++ready_ != started_ || !events_.on_note) return;
  const std::string who =
      started_ == 1 ? "the worker is" : "all " + std::to_string(started_) + " workers are";
  events_.on_note(who + " ready, " + seconds_text(boot_now() - started_at_) +
                  " after the start of the round");
}

// Who gives a snapshot its final name must be the only world of its job.
std::string ProcessHost::Impl::why_not_commit() const {
  if (!is_running_ || is_stopping_) return "this round is being stopped";
  const bool is_ours = !events_.holds_grant || events_.holds_grant();
  return is_ours ? "" : "this node has lost its coordinator";
}

bool ProcessHost::Impl::has_stopped_worker() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& item) { return item.second.is_stopped(); });
}

std::vector<Witness> ProcessHost::Impl::look_at_workers() const {
  std::vector<Witness> seen;
  for (const auto& [pid, worker] : workers_) {
    Witness witness;
    witness.worker.pid = pid;
    witness.worker.local_rank = worker.local_rank();
    witness.worker.rank = worker.rank();
    look_at_process(witness.worker);
    const auto rank = static_cast<int>(worker.local_rank().value);
    if (channel_) witness.worker.beat = channel_->heartbeat(rank);
    if (channel_) witness.stack_file = channel_->stack_file(rank);
    seen.push_back(std::move(witness));
  }
  const auto by_rank = [](const Witness& a, const Witness& b) {
    return a.worker.local_rank < b.worker.local_rank;
  };
  std::sort(seen.begin(), seen.end(), by_rank);
  return seen;
}

void ProcessHost::Impl::ask_to_stop() {
  if (channel_) channel_->ask_to_stop();
}

bool ProcessHost::Impl::can_save(int local_rank) const {
  return channel_ && channel_->can_save(local_rank);
}

void ProcessHost::Impl::take_last_words(WorkerEnd& end) {
  const auto rank = static_cast<int>(end.local_rank.value);
  const WorkerChannel::LastWords words = channel_->worker_ended(rank);
  if (words.made_no_step && events_.on_word) events_.on_word(rank, WorkerWord::EndedBeforeStep);
  if (end.is_success()) return;
  if (!end.error && !words.report.empty()) end.error = report_of(words.report);
  if (!words.heartbeat || !events_.on_note) return;
  events_.on_note("local rank " + std::to_string(rank) + " was at step " +
                  std::to_string(words.heartbeat->step) + " after " +
                  std::to_string(words.heartbeat->collectives) +
                  " collectives; its last heartbeat came " + seconds_text(words.heartbeat->age) +
                  " before its end");
}

}  // namespace cpprun
