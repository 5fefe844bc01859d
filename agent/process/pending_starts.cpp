#include "agent/process/pending_starts.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "common/check.hpp"
#include "common/limits/agent.hpp"

namespace cpprun {

PendingStarts::PendingStarts(boost::asio::io_context& loop, std::shared_ptr<LoopPoster> poster,
                             std::string token, std::function<void()> on_time)
    : starter_(std::move(token)),
      timer_(loop, on_time),
      spawner_([poster = std::move(poster), on_time] { LoopPoster::post(poster, on_time); }) {}

void PendingStarts::begin_round(const std::vector<WorkerSpec>& specs) {
  CPPRUN_CHECK(!is_busy());
  stop_signal_ = 0;
  kill_at_ = Instant::never();
  killed_at_.reset();
  slow_index_.reset();
  last_start_at_ = boot_now();
  workers_.clear();
  for (const WorkerSpec& spec : specs) {
    workers_.push_back(std::make_shared<StartingWorker>(StartingWorker{spec}));
  }
}

void PendingStarts::begin(const LogFiles& files, int cgroup, const WorkerFork& fork) {
  spawner_.begin(starter_.make(workers_, files, cgroup, fork));
}

void PendingStarts::end_round() {
  workers_.clear();
  timer_.set(Instant::never());
}

std::vector<SpawnThread::Outcome> PendingStarts::take() {
  std::vector<SpawnThread::Outcome> outcomes = spawner_.take();
  if (!outcomes.empty()) last_start_at_ = boot_now();
  if (!is_busy()) timer_.set(Instant::never());
  return outcomes;
}

// The spawn thread calls after the last start only.
PendingStarts::State PendingStarts::look() {
  const Instant now = boot_now();
  if (stop_signal_ != 0 || killed_at_) {
    timer_.set(kill_at_);
    return now >= kill_at_ ? State::Overdue : State::Stopping;
  }
  timer_.set(now + limits::kStartsInterval);
  const std::optional<SpawnThread::Pending> pending = spawner_.pending();
  const bool is_late = pending && now - last_start_at_ >= limits::kSpawnTimeout;
  if (!is_late || is_slow()) return State::Starting;
  slow_index_ = pending->index;
  return State::BecameSlow;
}

std::optional<LocalRank> PendingStarts::worker_of(int pid) const {
  const std::optional<size_t> index = spawner_.index_of(pid);
  if (!index) return std::nullopt;
  return workers_.at(*index)->spec.local_rank;
}

void PendingStarts::stop(int signal, Duration grace) {
  stop_signal_ = signal;
  kill_at_ = std::min(kill_at_, boot_now() + std::min(grace, limits::kStopStartTimeout));
  spawner_.stop();
  if (!is_busy()) kill_at_ = Instant::never();
  timer_.set(kill_at_);
}

void PendingStarts::kill() {
  spawner_.cancel();
  if (!killed_at_) killed_at_ = boot_now();
  kill_at_ = Instant::never();
  timer_.set(Instant::never());
}

int PendingStarts::stop_signal() const { return stop_signal_ != 0 ? stop_signal_ : SIGKILL; }

std::optional<Instant> PendingStarts::killed_at() const {
  return spawner_.pending() ? killed_at_ : std::nullopt;
}

std::optional<StuckProcess> PendingStarts::unended(Instant now, Duration least) const {
  const std::optional<SpawnThread::Pending> pending = spawner_.pending();
  if (!killed_at_ || !pending || pending->child == 0 || *killed_at_ + least > now) {
    return std::nullopt;
  }
  const WorkerSpec& spec = workers_.at(pending->index)->spec;
  return StuckProcess{pending->child, spec.local_rank, spec.rank, now - *killed_at_};
}

}  // namespace cpprun
