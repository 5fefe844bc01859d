#include "agent/process/process_host.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "common/check.hpp"
#include "common/limits/agent.hpp"
#include "common/text.hpp"

namespace cpprun {

namespace asio = boost::asio;

template <class Call>
void ProcessHost::post(Call call) {
  asio::post(loop_, lifetime_.guard(std::move(call)));
}

Status ProcessHost::open_output(const std::vector<WorkerSpec>& specs) {
  const bool is_needed = std::ranges::any_of(
      specs, [&](const WorkerSpec& spec) { return passes_agent(spec, specs.size() == 1); });
  return is_needed ? output_.open() : Status();
}

ExitReporter::Events ProcessHost::exit_events() {
  ExitReporter::Events events;
  events.on_end = [this](const WorkerExit& end) { events_.on_end(end); };
  events.on_progress = [this] { finish_if_done(); };
  events.ask_tail = [this](int local_rank) { output_.ask_tail(local_rank); };
  return events;
}

RoundOutput::Events ProcessHost::output_events() {
  RoundOutput::Events events;
  events.on_drained = [this] {
    if (on_written_) return std::exchange(on_written_, nullptr)();
    finish_if_done();
  };
  events.on_stdout_closed = [this](bool continues) {
    if (events_.on_stdout_closed) events_.on_stdout_closed(continues);
  };
  events.on_tail = [this](int rank, std::vector<std::string> lines) {
    exits_.on_lines(rank, std::move(lines));
  };
  events.on_resized = [this] { forward(SIGWINCH); };
  return events;
}

void ProcessHost::watch(WorkerProcess& worker) {
  const int pid = worker.pid();
  worker.async_wait(lifetime_.guard([this, pid](boost::system::error_code error) {
    if (!error && workers_.contains(pid)) on_dead(pid);
  }));
}

// The end of a worker that fails at once must not keep the others of its round from starting: one
// of them may fail as well, and be the cause. So their ends are awaited when all have started.
void ProcessHost::watch_workers() {
  for (const int pid : std::exchange(unwatched_, {})) {
    const auto worker = workers_.find(pid);
    if (worker != workers_.end()) watch(worker->second);
  }
}

void ProcessHost::watch_children() {
  child_signals_.async_wait(lifetime_.guard([this](boost::system::error_code error, int) {
    if (error || !is_running_) return;
    sweep_soon();
    watch_children();
    if (events_.on_stopped && has_stopped_worker()) events_.on_stopped();
  }));
}

void ProcessHost::on_dead(int pid) {
  WorkerProcess& worker = workers_.at(pid);
  if (!worker.has_status()) {
    traced_.insert(pid);
    return;
  }
  traced_.erase(pid);
  const WorkerExit& recorded = worker.record_exit(oom_);
  const bool is_failure = !recorded.is_success();
  if (is_failure) orphan_sweep_.set_hard();
  const Instant now = recorded.ended_at;
  orphan_sweep_.on_worker_ended(pid, now);

  WorkerExit end = worker.take_exit();
  const std::optional<ErrorReport> reported = final_report(end);
  const std::string error_file = is_failure ? worker.error_file() : "";
  const std::string stderr_file = worker.stderr_file();
  workers_.erase(pid);
  asked_.erase(pid);
  released_.erase(pid);
  const int rank = static_cast<int>(end.local_rank.value);
  output_.on_worker_exit(rank);
  if (is_holding_) {  // its round is over, so its exit has no consequence
    events_.on_end(end);
    return sweep_soon();
  }
  // The last lines of a worker that the agent's signal ended do not matter. A worker that exited by
  // itself meanwhile may be the root cause (worker_exit.hpp: has_own_cause).
  const bool is_own = !end.is_stopped_by_us || end.exit_code > 0;
  const bool wants_lines =
      is_failure && is_own && (output_.has_stderr(rank) || !stderr_file.empty());
  sweep_soon();  // so the host is not done before the exit is reported
  if (start_error_) return end_output_if_due();  // the exits of a start that failed do not count
  if (is_failure && is_own && events_.on_failure) events_.on_failure(end);
  exits_.add(std::move(end), {wants_lines, stderr_file, error_file, reported});
  end_output_if_due();
  exits_.report();
}

// After the last worker of the round has ended.
void ProcessHost::end_output_if_due() {
  if (has_unreleased() || pending_starts_.is_busy()) return;
  kill_timer_.set(Instant::never());
  if (!output_.is_drained()) {
    std::set<int> survivors;
    for (const auto& [pid, step] : released_) {
      survivors.insert(static_cast<int>(workers_.at(pid).local_rank().value));
    }
    output_.finish(std::move(survivors));
  }
  limit_output_wait();
}

void ProcessHost::hurry() {
  is_hurried_ = true;
  limit_output_wait();
}

void ProcessHost::await_output(std::function<void()> done) {
  if (is_running_ || is_hurried_) return done();
  on_written_ = std::move(done);
  output_.finish_all();
}

void ProcessHost::limit_output_wait() {
  if ((!is_hurried_ && !is_stopping_) || has_unreleased()) return;
  output_.limit_wait(is_hurried_ ? limits::kOutputAfterExit : limits::kOutputAfterStop);
}

void ProcessHost::sweep_soon() {
  if (is_sweep_posted_) return;  // one scan serves many exits at once
  is_sweep_posted_ = true;
  post([this] { sweep(); });
}

void ProcessHost::sweep() {
  is_sweep_posted_ = false;
  if (!is_running_) return;
  for (int pid : std::set<int>(traced_)) on_dead(pid);
  look_for_orphans();
  sweep_timer_.set(orphan_sweep_.next_deadline());
  watch_killed();
  finish_if_done();
}

// While a start is under way, a worker whose outcome is not taken yet may have left processes
// behind already; they are no orphans of an ended worker.
void ProcessHost::look_for_orphans() {
  if (!pending_starts_.is_busy()) orphan_sweep_.look(boot_now(), cgroup_ ? &*cgroup_ : nullptr);
}

void ProcessHost::finish_if_done() {
  if (!is_running_ || is_sweep_posted_ || has_unreleased() || !exits_.is_empty()) return;
  if (!output_.is_drained() || !orphan_sweep_.is_clean() || pending_starts_.is_busy()) return;
  if (!workers_.empty()) return hold_survivors();
  is_running_ = is_holding_ = false;
  pending_starts_.end_round();
  child_signals_.cancel();
  sweep_timer_.set(Instant::never());
  stuck_timer_.set(Instant::never());
  guard_.reset();
  const std::optional<Error> failed = std::exchange(start_error_, std::nullopt);
  if (failed && !is_stopping_) {
    if (events_.on_start_failed) events_.on_start_failed(*failed);
  } else if (events_.on_all_workers_gone) {
    events_.on_all_workers_gone();
  }
}

void ProcessHost::stop(int signal, Duration grace) {
  if (!is_running_) return;
  stop_starts(signal, grace);
  saving_.clear();
  forget_survivors();
  is_stopping_ = true;
  stop_all(signal, grace);
  limit_output_wait();
}

void ProcessHost::stop_saving(int signal, Duration grace) {
  if (!is_running_) return;
  if (!has_started_) return stop(signal, grace);  // a snapshot needs all workers
  for (const auto& [pid, worker] : workers_) {
    if (can_save(worker)) saving_.insert(pid);
  }
  stop_all(signal, grace);
}

void ProcessHost::end_saving(int signal) {
  is_stopping_ = true;
  for (int pid : std::exchange(saving_, {})) {
    const auto worker = workers_.find(pid);
    if (worker == workers_.end() || worker->second.is_dead()) continue;
    worker->second.signal_group(signal);
    worker->second.signal_group(SIGCONT);
  }
}

void ProcessHost::stop_all(int signal, Duration grace) {
  if (channel_) channel_->ask_to_stop();
  orphan_sweep_.set_hard();
  for (auto& [pid, worker] : workers_) {
    if (worker.is_dead()) continue;  // it exited before the stop
    worker.mark_stopped();
    if (!saving_.contains(pid) && !is_spared(pid)) worker.signal_group(signal);
    worker.signal_group(SIGCONT);
  }
  sweep_soon();
  const Instant deadline = boot_now() + grace;
  if (grace <= Duration::zero()) {
    on_grace_over();
  } else if ((!workers_.empty() || pending_starts_.is_busy()) && deadline < kill_timer_.at()) {
    kill_timer_.set(deadline);
  }
}

void ProcessHost::on_grace_over() {
  kill_timer_.set(Instant::never());
  pending_starts_.end_grace();
  if (is_stopping_ && pending_starts_.is_busy()) kill_start();
  for (auto& [pid, worker] : workers_) {
    if (!is_spared(pid)) worker.signal_group(SIGKILL);
  }
  const bool is_whole = asked_.empty() && released_.empty();
  if (cgroup_ && is_whole) cgroup_->kill();
  if (!killed_at_) killed_at_ = boot_now();
  watch_killed();
}

// ---------------------------------------------------------------- survivors

void ProcessHost::stop_but_survivors(int signal, Duration grace, Duration limit,
                                     std::optional<LocalRank> hung) {
  if (!is_running_) return;
  if (is_holding_ || start_error_) return stop(signal, grace);
  regroup_signal_ = signal;
  regroup_grace_ = grace;
  regroup_timer_.set(boot_now() + limit);
  // Survivors are asked when all workers of the round have started: before that they may still wait
  // for the variables of the round.
  is_regroup_due_ = !has_started_;
  if (has_started_) ask_to_regroup(hung);
}

void ProcessHost::ask_to_regroup(std::optional<LocalRank> hung) {
  for (const auto& [pid, worker] : workers_) {
    const auto rank = static_cast<int>(worker.local_rank().value);
    if (!channel_ || worker.is_dead() || worker.local_rank() == hung) continue;
    if (channel_->ask_to_regroup(rank)) asked_.insert(pid);
  }
  if (asked_.empty()) return stop(regroup_signal_, regroup_grace_);
  is_stopping_ = true;
  stop_all(regroup_signal_, regroup_grace_);
  limit_output_wait();
}

void ProcessHost::forget_survivors() {
  regroup_timer_.set(Instant::never());
  if (is_holding_) output_.on_survivors_end();
  asked_.clear();
  released_.clear();
  is_holding_ = is_regroup_due_ = false;
}

// Those that have not left their process group yet are stopped like all others.
void ProcessHost::on_regroup_time() {
  regroup_timer_.set(Instant::never());
  if (is_regroup_due_) return stop(regroup_signal_, regroup_grace_);  // the start is slow
  const std::set<int> late = std::exchange(asked_, {});
  if (late.empty()) return;
  if (events_.on_note) {
    events_.on_note(text::count(late.size(), "worker") +
                    " did not regroup in time and will be replaced");
  }
  if (!killed_at_) return stop_all(regroup_signal_, regroup_grace_);
  killed_at_.reset();  // the grace of the others is over already
  on_grace_over();
}

void ProcessHost::on_released(int local_rank, int64_t step) {
  const std::optional<int> pid = pid_of(local_rank);
  if (!pid || asked_.erase(*pid) == 0) return;  // it is late
  released_.emplace(*pid, step);
  if (asked_.empty()) regroup_timer_.set(Instant::never());
  end_output_if_due();
  sweep_soon();
}

// The round stays open, so that the end of a survivor is handled and its orphans are found.
void ProcessHost::hold_survivors() {
  if (std::exchange(is_holding_, true)) return;
  pending_starts_.end_round();
  killed_at_.reset();  // what was killed is gone
  watch_killed();
  if (events_.on_workers_released) events_.on_workers_released();
}

// The survivors become workers of the round that begins. Their local ranks.
std::set<int> ProcessHost::enter_round() {
  std::set<int> ranks;
  for (const std::shared_ptr<StartingWorker>& starting : pending_starts_.workers()) {
    const auto rank = static_cast<int>(starting->spec.local_rank.value);
    const std::optional<int> pid = pid_of(rank);
    if (!pid) continue;
    starting->survivor = *pid;
    workers_.at(*pid).enter_round(starting->spec);
    ranks.insert(rank);
  }
  is_holding_ = false;
  return ranks;
}

void ProcessHost::take_survivor(StartingWorker& starting) {
  const WorkerSpec& spec = starting.spec;
  const auto worker = workers_.find(starting.survivor);
  const auto step = released_.find(starting.survivor);
  if (worker == workers_.end() || step == released_.end()) return;  // it ended, or is stopped
  const auto rank = static_cast<int>(spec.local_rank.value);
  const bool is_sent = channel_ && channel_->send_new_round(rank, spec.round_variables,
                                                            starting.out.get(), starting.err.get());
  starting.out.reset();
  starting.err.reset();
  if (events_.on_kept) events_.on_kept(spec.local_rank, spec.rank, starting.survivor, step->second);
  released_.erase(step);
  if (is_stopping_ || start_error_) worker->second.mark_stopped();
  if (is_stopping_ || start_error_ || !is_sent) worker->second.signal_group(SIGKILL);
}

// ---------------------------------------------------------------- stuck processes

std::optional<Instant> ProcessHost::first_kill() const {
  std::optional<Instant> since = orphan_sweep_.first_kill();
  const bool has_killed = workers_.size() > asked_.size() + released_.size();
  if (killed_at_ && has_killed) since = std::min(since.value_or(*killed_at_), *killed_at_);
  if (const std::optional<Instant> killed = pending_starts_.killed_at()) {
    since = std::min(since.value_or(*killed), *killed);
  }
  return since;
}

void ProcessHost::watch_killed() {
  const std::optional<Instant> since = first_kill();
  const bool is_needed = is_running_ && since && events_.on_stuck;
  const Instant due =
      is_needed ? std::max(*since + stuck_after_, next_stuck_report_) : Instant::never();
  stuck_timer_.set(due);
}

void ProcessHost::be_urgent() {
  stuck_after_ = std::min(stuck_after_, limits::kUrgentKillTimeout);
  watch_killed();
}

std::vector<StuckProcess> ProcessHost::unended(Duration least) {
  const Instant now = boot_now();
  std::vector<StuckProcess> found;
  look_for_orphans();
  const bool is_due = killed_at_ && *killed_at_ + least <= now;
  for (const auto& [pid, worker] : workers_) {
    if (!is_due || is_spared(pid) || worker.has_status()) continue;
    found.push_back({pid, worker.local_rank(), worker.rank(), now - *killed_at_});
  }
  if (const auto starting = pending_starts_.unended(now, least)) found.push_back(*starting);
  for (const OrphanSweep::Unended& left : orphan_sweep_.unended()) {
    if (left.killed_at + least > now) continue;
    found.push_back({left.pid, left.worker, std::nullopt, now - left.killed_at});
  }
  return found;
}

void ProcessHost::on_stuck_time() {
  const std::vector<StuckProcess> found = stuck();
  if (!found.empty()) next_stuck_report_ = boot_now() + limits::kStuckReadTimeout;
  watch_killed();
  if (found.empty()) return finish_if_done();  // the process has ended meanwhile
  events_.on_stuck(found);
}

void ProcessHost::forward(int signal) {
  for (auto& [pid, worker] : workers_) worker.signal_group(signal);
}

void ProcessHost::suspend_during(const std::function<void()>& wait) {
  take_outcomes();  // those workers are suspended too
  std::vector<const WorkerProcess*> suspended;
  for (const auto& [pid, worker] : workers_) {
    if (worker.is_dead() || worker.is_stopped()) continue;
    worker.signal_group(SIGSTOP);
    suspended.push_back(&worker);
  }
  wait();
  for (const WorkerProcess* worker : suspended) worker->signal_group(SIGCONT);
}

bool ProcessHost::forward_to(LocalRank wanted, int signal) {
  for (auto& [pid, worker] : workers_) {
    if (worker.local_rank() != wanted || worker.is_dead()) continue;
    worker.signal_group(signal);
    return true;
  }
  return false;
}

std::vector<LiveWorker> ProcessHost::live() const {
  std::vector<LiveWorker> all;
  for (const auto& [pid, worker] : workers_) {
    const auto rank = static_cast<int>(worker.local_rank().value);
    all.push_back({worker.local_rank(), worker.rank(), pid,
                   channel_ ? channel_->heartbeat(rank) : std::nullopt});
  }
  std::ranges::sort(all, {}, [](const LiveWorker& w) { return w.local_rank.value; });
  return all;
}

std::vector<int> ProcessHost::pids() const {
  std::vector<int> pids;
  for (const LiveWorker& worker : live()) pids.push_back(worker.pid);
  return pids;
}

std::optional<int> ProcessHost::pid_of(int local_rank) const {
  for (const auto& [pid, worker] : workers_) {
    if (worker.local_rank().value == local_rank) return pid;
  }
  return std::nullopt;
}

std::vector<std::optional<Heartbeat>> ProcessHost::heartbeats(int64_t workers) const {
  std::vector<std::optional<Heartbeat>> all(static_cast<size_t>(workers));
  for (size_t rank = 0; channel_ && rank < all.size(); ++rank) {
    all[rank] = channel_->heartbeat(static_cast<int>(rank));
  }
  return all;
}

std::optional<int64_t> ProcessHost::step_of(int local_rank) const {
  const auto beat = channel_ ? channel_->heartbeat(local_rank) : std::nullopt;
  return beat ? std::optional(beat->step) : std::nullopt;
}

// ---------------------------------------------------------------- start of a round, hard end

ProcessHost::ProcessHost(boost::asio::io_context& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      poster_(std::make_shared<LoopPoster>(loop)),
      pending_starts_(loop, poster_, options_.token, [this] { take_outcomes(); }),
      orphan_sweep_(options_.token,
                    {[this](int pid) { return pending_starts_.worker_of(pid).has_value(); },
                     [this, way = poster_] { LoopPoster::post(way, [this] { sweep_soon(); }); }}),
      exits_(loop, poster_, io_, exit_events()),
      kill_timer_(loop, [this] { on_grace_over(); }),
      sweep_timer_(loop, [this] { sweep(); }),
      child_signals_(loop, SIGCHLD),
      output_(loop, poster_, output_events()) {
  CPPRUN_CHECK(!options_.token.empty() && events_.on_end);
  fill_standard_streams();
  if (options_.use_cgroup) cgroup_ = Cgroup::make(options_.token);
  if (!options_.channel_name.empty()) open_channel();
}

ProcessHost::~ProcessHost() {
  poster_->close();
  if (kill_everything().empty()) return;
  boost::system::error_code ignored;
  child_signals_.clear(ignored);  // restores the default action, which SIG_IGN replaces
  ::signal(SIGCHLD, SIG_IGN);
}

void ProcessHost::start(const std::vector<WorkerSpec>& specs, const LogFiles& files) {
  CPPRUN_CHECK((is_idle() || is_holding_) && !specs.empty());
  begin_round(specs);
  if (Status opened = open_output(specs); !opened) {
    const bool is_limit = is_out_of_descriptors(opened.error());
    return fail_start(is_limit ? descriptor_error(specs.size()) : opened.error());
  }
  const auto missing = static_cast<size_t>(std::ranges::count(
      pending_starts_.workers(), 0,
      [](const std::shared_ptr<StartingWorker>& each) { return each->survivor; }));
  const bool is_forking = options_.worker_fork && missing > 0;
  pending_starts_.begin(files, cgroup_ ? cgroup_->folder() : -1,
                        is_forking ? options_.worker_fork(missing) : WorkerFork());
  watch_starts();
}

void ProcessHost::begin_round(const std::vector<WorkerSpec>& specs) {
  orphan_sweep_.begin_round();
  oom_.begin_round();
  output_.begin_round();
  is_stopping_ = has_started_ = false;
  killed_at_.reset();
  stuck_after_ = limits::kKillTimeout;
  next_stuck_report_ = Instant{};
  saving_.clear();
  traced_.clear();
  started_at_ = boot_now();
  started_ = specs.size();
  ready_ = 0;
  unwatched_.clear();
  pending_starts_.begin_round(specs);
  const std::set<int> survivors = enter_round();
  if (channel_) channel_->begin_round(specs.size(), survivors);
  if (std::exchange(is_running_, true)) return;  // because of survivors
  guard_.emplace(loop_.get_executor());
  watch_children();
}

void ProcessHost::take_outcomes() {
  if (!is_running_) return;
  std::vector<OutputStream> streams;
  for (SpawnThread::Outcome& outcome : pending_starts_.take()) {
    StartingWorker& worker = *pending_starts_.workers().at(outcome.index);
    if (!outcome.spawned) {
      fail_start(outcome.spawned.error());
      continue;
    }
    worker.survivor != 0 ? take_survivor(worker) : take_worker(worker, std::move(*outcome.spawned));
    std::ranges::move(worker.streams, std::back_inserter(streams));
    worker.streams.clear();
  }
  output_.add(std::move(streams));
  if (pending_starts_.is_busy()) return watch_starts();
  watch_killed();
  const bool is_whole = !is_stopping_ && !start_error_;
  if (is_whole && !std::exchange(has_started_, true)) on_whole_start();
  watch_workers();
  end_output_if_due();
  sweep_soon();
}

void ProcessHost::on_whole_start() {
  if (std::exchange(is_regroup_due_, false)) return ask_to_regroup(std::nullopt);
  if (events_.on_started) events_.on_started();
}

void ProcessHost::take_worker(StartingWorker& starting, Spawned spawned) {
  const WorkerSpec& spec = starting.spec;
  const int pid = spawned.pid;
  WorkerProcess& worker = workers_.try_emplace(pid, loop_, std::move(spawned), spec).first->second;
  orphan_sweep_.on_worker_started(pid, spec.local_rank);
  unwatched_.push_back(pid);
  if (pending_starts_.is_slow()) watch_workers();
  const std::optional<SpawnReason>& reason = starting.spawn_reason;
  reason ? starts_.count_spawn(*reason) : static_cast<void>(++starts_.forked);
  if (events_.on_start) events_.on_start(spec.local_rank, spec.rank, pid, reason);
  if (!is_stopping_ && !start_error_) return;
  worker.mark_stopped();
  worker.signal_group(start_error_ ? SIGKILL : pending_starts_.stop_signal());
  worker.signal_group(SIGCONT);
}

// A worker could not be started: the others of its round end, and then on_start_failed() follows.
void ProcessHost::fail_start(const Error& error) {
  if (is_stopping_) return;  // it was cancelled
  if (is_regroup_due_) return stop(regroup_signal_, regroup_grace_);
  start_error_ = error;
  forget_survivors();
  orphan_sweep_.set_hard();
  for (auto& [pid, worker] : workers_) worker.mark_stopped();
  if (!workers_.empty()) on_grace_over();
  sweep_soon();
}

void ProcessHost::stop_starts(int signal, Duration grace) {
  if (grace <= Duration::zero() || start_error_) return cancel_starts();
  take_outcomes();  // those workers get the signal of the stop
  if (!pending_starts_.is_busy()) return;
  pending_starts_.stop(signal, grace);
  watch_workers();
  end_output_if_due();
}

void ProcessHost::cancel_starts() {
  take_outcomes();  // those workers get the signal of the stop
  if (pending_starts_.is_busy()) kill_start();
}

void ProcessHost::kill_start() {
  pending_starts_.kill();
  watch_workers();
  watch_killed();
  end_output_if_due();
  sweep_soon();
}

void ProcessHost::watch_starts() {
  switch (pending_starts_.look()) {
    case PendingStarts::State::Starting: return;
    case PendingStarts::State::Stopping: return watch_workers();
    case PendingStarts::State::Overdue: return kill_start();
    case PendingStarts::State::BecameSlow: break;
  }
  watch_workers();
  const WorkerSpec& spec = pending_starts_.slow_spec();
  if (events_.on_slow_start) events_.on_slow_start(spec.local_rank, spec.argv[0]);
}

std::vector<StuckProcess> ProcessHost::kill_everything() {
  if (workers_.empty() && !is_running_) return {};
  orphan_sweep_.set_hard();
  forget_survivors();
  is_stopping_ = true;
  on_grace_over();
  const Instant until = *killed_at_ + limits::kEndingTimeout;
  cancel_starts();
  pending_starts_.wait(std::max(Duration{}, until - boot_now()));
  take_outcomes();
  reap_killed(until);
  return unended(Duration{});
}

void ProcessHost::reap_killed(Instant until) {
  for (auto next = workers_.begin(); next != workers_.end();) {
    WorkerProcess& worker = next->second;
    const Duration left = std::max(Duration{}, until - boot_now());
    const auto most = std::chrono::ceil<std::chrono::milliseconds>(left);
    if (!worker.wait_dead(static_cast<int>(most.count())) || !worker.has_status()) {
      ++next;
      continue;
    }
    worker.record_exit(oom_);
    orphan_sweep_.on_worker_ended(worker.pid(), boot_now());
    worker.take_exit();
    next = workers_.erase(next);
  }
  // Killed processes need a moment to end. The loop does not run here, so this function polls.
  for (;;) {
    orphan_sweep_.look(boot_now(), cgroup_ ? &*cgroup_ : nullptr);
    if (orphan_sweep_.is_clean() || boot_now() >= until) return;
    ::poll(nullptr, 0, 1);
  }
}

// ---------------------------------------------------------------- worker channel

void ProcessHost::open_channel() {
  WorkerChannel::Events events{events_};
  events.worker_of = [this](int session) -> std::optional<int> {
    // Each worker leads a session whose number is its pid.
    const auto worker = workers_.find(session);
    if (worker != workers_.end()) return static_cast<int>(worker->second.local_rank().value);
    const auto starting = pending_starts_.worker_of(session);  // quicker than the spawn thread
    if (!starting) return std::nullopt;
    return static_cast<int>(starting->value);
  };
  events.on_ready = [this](int rank) { on_ready(rank); };
  events.on_released = [this](int rank, int64_t step) { on_released(rank, step); };
  events.commit_refusal = [this] { return commit_refusal(); };
  channel_.emplace(loop_, options_.channel_name, std::move(events), arenas_);
  if (channel_->is_open()) return;
  channel_.reset();
  options_.channel_name.clear();
}

void ProcessHost::on_ready(int local_rank) {
  if (events_.on_ready) events_.on_ready(LocalRank(local_rank));
  if (++ready_ != started_ || !events_.on_note) return;
  const std::string who =
      started_ == 1 ? "the worker is" : "all " + std::to_string(started_) + " workers are";
  events_.on_note(who + " ready, " + text::seconds(boot_now() - started_at_, 3) +
                  " after the start of the round");
}

// A worker may give a snapshot its final name only in the job's current round.
std::string ProcessHost::commit_refusal() const {
  if (!is_running_ || is_stopping_) return "this round is being stopped";
  const bool is_ours = !events_.holds_worker_lease || events_.holds_worker_lease();
  return is_ours ? "" : "this node has lost its coordinator";
}

bool ProcessHost::has_stopped_worker() const {
  return std::ranges::any_of(workers_, [](const auto& item) { return item.second.is_stopped(); });
}

std::vector<StackTarget> ProcessHost::look() const {
  std::vector<StackTarget> seen;
  for (const auto& [pid, worker] : workers_) {
    StackTarget target;
    target.worker.pid = pid;
    target.worker.local_rank = worker.local_rank();
    target.worker.rank = worker.rank();
    const auto rank = static_cast<int>(worker.local_rank().value);
    if (channel_) channel_->observe(rank, target.worker);
    if (channel_) target.stack_file = channel_->stack_file(rank);
    if (channel_) target.trace = channel_->trace_files(rank);
    seen.push_back(std::move(target));
  }
  std::ranges::sort(seen, {}, [](const StackTarget& t) { return t.worker.local_rank.value; });
  return seen;
}

std::optional<ErrorReport> ProcessHost::final_report(WorkerExit& end) {
  if (!channel_) return std::nullopt;
  const auto rank = static_cast<int>(end.local_rank.value);
  const WorkerChannel::FinalReport last = channel_->worker_exited(rank);
  if (last.made_no_step && events_.on_milestone)
    events_.on_milestone(rank, WorkerMilestone::EndedBeforeStep);
  if (last.heartbeat && !last.made_no_step) {
    end.step = last.heartbeat->step;
    if (events_.on_last_beat) events_.on_last_beat(*last.heartbeat);
  }
  if (end.is_success()) return std::nullopt;
  if (last.heartbeat && events_.on_note) {
    events_.on_note("local rank " + std::to_string(rank) + " was at step " +
                    std::to_string(last.heartbeat->step) + " after " +
                    std::to_string(last.heartbeat->collectives) +
                    " collectives; its last heartbeat came " +
                    text::seconds(last.heartbeat->age, 3) + " before its end");
  }
  return last.error();
}

}  // namespace cpprun
