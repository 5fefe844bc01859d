#include "agent/process/process_host.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "agent/process/host_impl.hpp"
#include "agent/process/terminal.hpp"
#include "common/check.hpp"
#include "common/limits/agent.hpp"

namespace cpprun {

namespace asio = boost::asio;

ProcessHost::ProcessHost(asio::io_context& loop, Options options, Events events)
    : impl_(std::make_unique<Impl>(loop, std::move(options), std::move(events))) {}
ProcessHost::~ProcessHost() {
  const bool leaves_any = !impl_->kill_everything().empty();
  impl_.reset();  // which gives SIGCHLD its default effect
  if (leaves_any) ::signal(SIGCHLD, SIG_IGN);
}

Status ProcessHost::start(const std::vector<WorkerSpec>& workers) {
  return impl_->start(workers);
}
void ProcessHost::stop(int signal, Duration grace) {
  impl_->stop(signal, grace);
}
void ProcessHost::stop_saving(int signal, Duration grace) {
  impl_->stop_saving(signal, grace);
}
void ProcessHost::end_saving(int signal) {
  impl_->end_saving(signal);
}
void ProcessHost::be_urgent() {
  impl_->be_urgent();
}
std::vector<StuckProcess> ProcessHost::stuck() {
  return impl_->stuck();
}
void ProcessHost::hurry() {
  impl_->hurry();
}
void ProcessHost::forward(int signal) {
  impl_->forward(signal);
}
bool ProcessHost::forward_to(LocalRank worker, int signal) {
  return impl_->forward_to(worker, signal);
}
std::vector<StuckProcess> ProcessHost::kill_everything() {
  return impl_->kill_everything();
}
bool ProcessHost::is_quiet() const {
  return impl_->is_quiet();
}
std::vector<int> ProcessHost::pids() const {
  return impl_->pids();
}
std::vector<LiveWorker> ProcessHost::live() const {
  return impl_->live();
}
std::optional<int> ProcessHost::pid_of(int local_rank) const {
  return impl_->pid_of(local_rank);
}
std::optional<int64_t> ProcessHost::step_of(int local_rank) const {
  return impl_->step_of(local_rank);
}
std::vector<Witness> ProcessHost::look() const {
  return impl_->look_at_workers();
}
const std::string& ProcessHost::channel_name() const {
  return impl_->channel_name();
}

template <class Call>
void ProcessHost::Impl::post(Call call) {
  asio::post(loop_, [alive = std::weak_ptr<int>(life_), call = std::move(call)]() mutable {
    if (!alive.expired()) call();
  });
}

Status ProcessHost::Impl::open_output() {
  if (output_) return {};
  Output::Events events;
  events.on_drained = [this] { post([this] { on_drained(); }); };
  events.on_stdout_closed = [this](bool goes_on) {
    post([this, goes_on] {
      if (events_.on_stdout_closed) events_.on_stdout_closed(goes_on);
    });
  };
  events.on_resized = [this] { post([this] { forward(SIGWINCH); }); };
  events.on_tail = [this](int rank, std::vector<std::string> lines) {
    post([this, rank, lines = std::move(lines)]() mutable { on_lines(rank, std::move(lines)); });
  };
  Result<std::unique_ptr<Output>> output = Output::start(std::move(events));
  if (!output) return output.error();
  output_ = std::move(*output);
  return {};
}

void ProcessHost::Impl::carry(std::vector<OutputStream> streams) {
  if (streams.empty()) return;
  is_drained_ = false;
  output_->add(std::move(streams));
}

void ProcessHost::Impl::watch(WorkerProcess& worker) {
  const int pid = worker.pid();
  worker.async_wait(
      [this, pid, alive = std::weak_ptr<int>(life_)](boost::system::error_code error) {
        if (!error && !alive.expired() && workers_.contains(pid)) on_dead(pid);
      });
}

void ProcessHost::Impl::watch_children() {
  const auto on_signal = [this, alive = std::weak_ptr<int>(life_)](boost::system::error_code error,
                                                                   int) {
    if (error || alive.expired() || !is_running_) return;
    look_soon();
    watch_children();
    if (events_.on_stopped && has_stopped_worker()) events_.on_stopped();
  };
  child_signals_.async_wait(on_signal);
}

// Workers have no controlling terminal, so the kernel does not tell them of a new size.
void ProcessHost::Impl::watch_window() {
  boost::system::error_code ignored;
  window_signals_.add(SIGWINCH, ignored);
  const auto on_signal = [this, alive = std::weak_ptr<int>(life_)](boost::system::error_code error,
                                                                   int) {
    if (error || alive.expired()) return;
    resize_terminals();
    watch_window();
  };
  window_signals_.async_wait(on_signal);
}

void ProcessHost::Impl::resize_terminals() {
  const int console = ::isatty(STDOUT_FILENO) == 1 ? STDOUT_FILENO : STDERR_FILENO;
  const Window window = window_of(console);
  if (output_ && window.rows > 0) output_->resize(window.rows, window.columns);
}

void ProcessHost::Impl::on_dead(int pid) {
  WorkerProcess& worker = workers_.at(pid);
  if (!worker.has_status()) {
    traced_.insert(pid);
    return;
  }
  traced_.erase(pid);
  const WorkerEnd& noted = worker.note_end(oom_);
  const bool is_failure = !noted.is_success();
  if (is_failure) sweep_.set_hard();
  const Instant now = noted.ended_at;
  sweep_.on_worker_ended(pid, now);

  WorkerEnd end = worker.take_end();
  if (channel_) take_last_words(end);
  workers_.erase(pid);
  const int rank = static_cast<int>(end.local_rank.value);
  if (!is_drained_) output_->on_worker_end(rank);
  // One that our signal ended has nothing to say; one that ended by itself meanwhile may be the
  // root cause (worker_end.hpp: has_own_cause).
  const bool is_own = !end.is_stopped_by_us || end.exit_code > 0;
  const bool wants_lines = is_failure && is_own && has_lines_[rank];
  if (wants_lines) output_->ask_tail(rank);
  ends_.push(std::move(end), wants_lines ? now + limits::kLastLinesTake : Instant::never());
  if (workers_.empty()) {
    kill_timer_.set(Instant::never());
    if (!is_drained_) output_->finish();
    limit_drain();
  }
  look_soon();
  deliver();
}

void ProcessHost::Impl::on_lines(int local_rank, std::vector<std::string> lines) {
  ends_.on_lines(local_rank, std::move(lines));
  deliver();
  settle();
}

void ProcessHost::Impl::deliver() {
  while (ends_.is_ready(boot_now())) {
    const WorkerEnd end = ends_.pop();
    events_.on_end(end);
  }
  lines_timer_.set(ends_.next_deadline());
}

void ProcessHost::Impl::hurry() {
  is_hurried_ = true;
  limit_drain();
}

void ProcessHost::Impl::limit_drain() {
  const bool is_due = (is_hurried_ || is_stopping_) && workers_.empty() && !is_drained_;
  if (!is_due) return;
  const Duration most = is_hurried_ ? limits::kOutputAfterExit : limits::kOutputAfterStop;
  drain_timer_.set(std::min(drain_timer_.at(), boot_now() + most));
}

void ProcessHost::Impl::on_drained() {
  drain_timer_.set(Instant::never());
  is_drained_ = true;
  settle();
}

void ProcessHost::Impl::look_soon() {
  if (is_look_posted_) return;  // many ends at once need one look
  is_look_posted_ = true;
  post([this] { look(); });
}

void ProcessHost::Impl::look() {
  is_look_posted_ = false;
  if (!is_running_) return;
  for (int pid : std::set<int>(traced_)) on_dead(pid);
  sweep_.look(boot_now(), cgroup_ ? &*cgroup_ : nullptr);
  sweep_timer_.set(sweep_.next_deadline());
  watch_killed();
  settle();
}

void ProcessHost::Impl::settle() {
  if (!is_running_ || is_look_posted_ || !workers_.empty() || !ends_.is_empty()) return;
  if (!is_drained_ || !sweep_.is_clean()) return;
  is_running_ = false;
  child_signals_.cancel();
  sweep_timer_.set(Instant::never());
  stuck_timer_.set(Instant::never());
  guard_.reset();
  if (events_.on_quiet) events_.on_quiet();
}

void ProcessHost::Impl::stop(int signal, Duration grace) {
  if (!is_running_) return;
  saving_.clear();
  is_stopping_ = true;
  ask_to_stop();
  stop_all(signal, grace);
  limit_drain();
}

void ProcessHost::Impl::stop_saving(int signal, Duration grace) {
  if (!is_running_) return;
  for (const auto& [pid, worker] : workers_) {
    const auto rank = static_cast<int>(worker.local_rank().value);
    if (can_save(rank)) saving_.insert(pid);
  }
  ask_to_stop();
  stop_all(signal, grace);
}

void ProcessHost::Impl::end_saving(int signal) {
  is_stopping_ = true;
  for (int pid : std::exchange(saving_, {})) {
    const auto worker = workers_.find(pid);
    if (worker == workers_.end() || worker->second.is_dead()) continue;
    worker->second.signal_group(signal);
    worker->second.signal_group(SIGCONT);
  }
}

void ProcessHost::Impl::stop_all(int signal, Duration grace) {
  sweep_.set_hard();
  for (auto& [pid, worker] : workers_) {
    if (worker.is_dead()) continue;  // it was quicker; its end is its own
    worker.mark_stopped();
    if (!saving_.contains(pid)) worker.signal_group(signal);
    worker.signal_group(SIGCONT);
  }
  look_soon();
  const Instant deadline = boot_now() + grace;
  if (grace <= Duration::zero()) {
    on_grace_over();
  } else if (!workers_.empty() && deadline < kill_timer_.at()) {
    kill_timer_.set(deadline);
  }
}

void ProcessHost::Impl::on_grace_over() {
  kill_timer_.set(Instant::never());
  for (auto& [pid, worker] : workers_) worker.signal_group(SIGKILL);
  if (cgroup_) cgroup_->kill();
  if (!killed_at_) killed_at_ = boot_now();
  watch_killed();
}

// ---------------------------------------------------------------- what SIGKILL does not end

std::optional<Instant> ProcessHost::Impl::waits_since() const {
  std::optional<Instant> since = sweep_.first_kill();
  if (killed_at_ && !workers_.empty()) since = std::min(since.value_or(*killed_at_), *killed_at_);
  return since;
}

void ProcessHost::Impl::watch_killed() {
  const std::optional<Instant> since = waits_since();
  const bool is_needed = is_running_ && since && events_.on_stuck;
  const Instant due = is_needed ? std::max(*since + patience_, said_stuck_at_) : Instant::never();
  stuck_timer_.set(due);
}

void ProcessHost::Impl::be_urgent() {
  patience_ = std::min(patience_, limits::kUrgentKillPatience);
  watch_killed();
}

std::vector<StuckProcess> ProcessHost::Impl::unended(Duration least) {
  const Instant now = boot_now();
  std::vector<StuckProcess> found;
  sweep_.look(now, cgroup_ ? &*cgroup_ : nullptr);
  const bool is_due = killed_at_ && *killed_at_ + least <= now;
  for (const auto& [pid, worker] : workers_) {
    if (!is_due || worker.has_status()) continue;
    found.push_back({pid, worker.local_rank(), worker.rank(), now - *killed_at_});
  }
  for (const Sweep::Unended& left : sweep_.unended()) {
    if (left.killed_at + least > now) continue;
    found.push_back({left.pid, left.worker, std::nullopt, now - left.killed_at});
  }
  return found;
}

void ProcessHost::Impl::on_stuck_time() {
  const std::vector<StuckProcess> found = stuck();
  if (!found.empty()) said_stuck_at_ = boot_now() + limits::kStuckLookTakes;
  watch_killed();
  if (found.empty()) return settle();  // what was waited for has ended meanwhile
  events_.on_stuck(found);
}

void ProcessHost::Impl::forward(int signal) {
  for (auto& [pid, worker] : workers_) worker.signal_group(signal);
}

bool ProcessHost::Impl::forward_to(LocalRank wanted, int signal) {
  for (auto& [pid, worker] : workers_) {
    if (worker.local_rank() != wanted || worker.is_dead()) continue;
    worker.signal_group(signal);
    return true;
  }
  return false;
}

std::vector<LiveWorker> ProcessHost::Impl::live() const {
  std::vector<LiveWorker> all;
  for (const auto& [pid, worker] : workers_) {
    const auto rank = static_cast<int>(worker.local_rank().value);
    all.push_back({worker.local_rank(), worker.rank(), pid,
                   channel_ ? channel_->heartbeat(rank) : std::nullopt});
  }
  std::ranges::sort(all, {}, [](const LiveWorker& w) { return w.local_rank.value; });
  return all;
}

std::vector<int> ProcessHost::Impl::pids() const {
  std::vector<int> pids;
  for (const LiveWorker& worker : live()) pids.push_back(worker.pid);
  return pids;
}

std::optional<int> ProcessHost::Impl::pid_of(int local_rank) const {
  for (const auto& [pid, worker] : workers_) {
    if (worker.local_rank().value == local_rank) return pid;
  }
  return std::nullopt;
}

std::optional<int64_t> ProcessHost::Impl::step_of(int local_rank) const {
  return channel_ ? channel_->step_of(local_rank) : std::nullopt;
}

}  // namespace cpprun
