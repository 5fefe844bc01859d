#include "agent/process/spawn/spawn_thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "agent/process/cleanup/helper_start.hpp"
#include "common/check.hpp"
#include "common/machine/reap.hpp"
#include "common/thread/detached_thread.hpp"

namespace cpprun {

// The starts of one round. All but `starts` is under the mutex of State.
struct SpawnThread::Job {
  std::vector<Start> starts;  // the thread's
  size_t at = 0;
  std::shared_ptr<StartTicket> ticket;  // of the start that is under way
  bool is_cancelled = false;
  bool is_over = false;  // no caller waits for an outcome any more
};

struct SpawnThread::State {
  std::function<void()> on_end;
  std::mutex mutex;
  std::condition_variable has_news;  // a job, or the end
  std::condition_variable has_ended;
  std::deque<std::shared_ptr<Job>> jobs;
  std::shared_ptr<Job> newest;
  std::vector<Outcome> outcomes;
  bool has_thread = false;
  bool is_closed = false;

  bool is_under_way() const { return newest && !newest->is_over; }
  // The mutex is held.
  void stop();
  void cancel();
};

namespace {

void kill_and_reap(int pid) {
  ::kill(pid, SIGKILL);
  reap(pid);
}

}  // namespace

void SpawnThread::State::stop() {
  if (!is_under_way()) return;
  newest->is_cancelled = true;
  if (!newest->ticket) newest->is_over = true;
}

void SpawnThread::State::cancel() {
  if (!is_under_way()) return;
  newest->is_cancelled = true;
  const bool has_child = newest->ticket && newest->ticket->cancel();
  if (!has_child) newest->is_over = true;
}

SpawnThread::SpawnThread(std::function<void()> on_end) : state_(std::make_shared<State>()) {
  state_->on_end = std::move(on_end);
  // Not with the first work: what a loop starts inherits the filter of the check that no loop
  // blocks (tests/support/loop_check.cpp), and a worker would die of it.
  state_->has_thread = start_detached_thread([state = state_] { run(*state); }).ok();
}

SpawnThread::~SpawnThread() {
  const std::lock_guard lock(state_->mutex);
  state_->cancel();
  state_->is_closed = true;
  state_->has_news.notify_all();
}

void SpawnThread::begin(std::vector<Start> starts) {
  CPPRUN_CHECK(!is_busy() && !starts.empty());
  const auto job = std::make_shared<Job>();
  job->starts = std::move(starts);
  std::unique_lock lock(state_->mutex);
  state_->newest = job;
  Status running;
  if (!state_->has_thread) {
    running = start_detached_thread([state = state_] { run(*state); });
    state_->has_thread = running.ok();
  }
  if (running) {
    state_->jobs.push_back(job);
    lock.unlock();  // first: the thread would wake up only to wait for the mutex
    state_->has_news.notify_one();
    return;
  }
  job->is_over = true;
  state_->outcomes.push_back({0, running.error()});
  lock.unlock();
  state_->on_end();
}

bool SpawnThread::is_busy() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_under_way() || !state_->outcomes.empty();
}

void SpawnThread::stop() { end_job(&State::stop); }

void SpawnThread::cancel() { end_job(&State::cancel); }

void SpawnThread::end_job(void (State::*end)()) {
  std::unique_lock lock(state_->mutex);
  const bool was_under_way = state_->is_under_way();
  (*state_.*end)();
  const bool is_end = was_under_way && !state_->is_under_way();
  const bool has_outcomes = !state_->outcomes.empty();
  lock.unlock();
  if (is_end && has_outcomes) state_->on_end();
}

std::vector<SpawnThread::Outcome> SpawnThread::take() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->outcomes, {});
}

std::optional<SpawnThread::Pending> SpawnThread::pending() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_under_way()) return std::nullopt;
  const Job& job = *state_->newest;
  return Pending{job.at, job.ticket ? job.ticket->child() : 0};
}

std::optional<size_t> SpawnThread::index_of(int pid) const {
  const std::lock_guard lock(state_->mutex);
  for (const Outcome& outcome : state_->outcomes) {
    if (outcome.spawned && outcome.spawned->pid == pid) return outcome.index;
  }
  if (!state_->is_under_way() || !state_->newest->ticket) return std::nullopt;
  return state_->newest->ticket->child() == pid ? std::optional(state_->newest->at) : std::nullopt;
}

void SpawnThread::wait(Duration most) {
  std::unique_lock lock(state_->mutex);
  state_->has_ended.wait_for(lock, most, [this] { return !state_->is_under_way(); });
}

void SpawnThread::run(State& state) {
  ::pthread_setname_np(::pthread_self(), "cpprun-spawn");
  std::unique_lock lock(state.mutex);
  const auto has_news = [&state] { return state.is_closed || !state.jobs.empty(); };
  while (true) {
    state.has_news.wait(lock, has_news);
    if (state.is_closed) return;
    const std::shared_ptr<Job> job = std::move(state.jobs.front());
    state.jobs.pop_front();
    lock.unlock();
    run_job(state, *job);
    job->starts.clear();  // their files may be closed here, and close() may block as well
    lock.lock();
  }
}

void SpawnThread::run_job(State& state, Job& job) {
  SpawnContext context;
  for (size_t index = 0; index < job.starts.size(); ++index) {
    if (!run_one(state, job, index, context)) return;
  }
}

// False: the job is over.
bool SpawnThread::run_one(State& state, Job& job, size_t index, SpawnContext& context) {
  const auto ticket = std::make_shared<StartTicket>();
  {
    const std::lock_guard lock(state.mutex);
    if (job.is_cancelled || state.is_closed) return false;
    job.at = index;
    job.ticket = ticket;
  }
  Result<Spawned> spawned = std::exchange(job.starts[index], nullptr)(context, *ticket);
  std::unique_lock lock(state.mutex);
  job.ticket.reset();
  if (job.is_over || state.is_closed) {  // no caller takes the outcome
    lock.unlock();
    if (!spawned || spawned->pid == 0) return false;
    kill_and_reap(spawned->pid);
    unregister_helper(spawned->pid);  // no effect for a worker
    return false;
  }
  const bool is_last = !spawned || job.is_cancelled || index + 1 == job.starts.size();
  job.is_over = is_last;
  state.outcomes.push_back({index, std::move(spawned)});
  if (!is_last) return true;
  lock.unlock();
  state.has_ended.notify_all();
  state.on_end();
  return false;
}

}  // namespace cpprun
