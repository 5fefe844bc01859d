// ProcessHost: the agent's interface to Linux processes. Starts the workers of a round, reports how
// each one ended, stops them, and removes every process that they leave behind.
//
// It decides no policy: the agent's core decides about restarts. Thread: the loop's; the spawn
// thread (spawn_thread.hpp) starts the workers. No other class waits for children of the agent.
#pragma once

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/process/channel/worker_channel.hpp"
#include "agent/process/cleanup/cgroup.hpp"
#include "agent/process/cleanup/orphan_sweep.hpp"
#include "agent/process/diagnostics/stack_collector.hpp"
#include "agent/process/diagnostics/stuck_process.hpp"
#include "agent/process/exit_reporter.hpp"
#include "agent/process/pending_starts.hpp"
#include "agent/process/spawn/spawn_thread.hpp"
#include "agent/process/streams/round_output.hpp"
#include "agent/process/streams/stream_fds.hpp"
#include "agent/process/worker_process.hpp"
#include "agent/process/worker_spec.hpp"
#include "agent/process/worker_starter.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/heartbeat.hpp"
#include "common/ids.hpp"
#include "common/lifetime.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/loop/timer.hpp"
#include "common/result.hpp"
#include "common/thread/io_thread.hpp"
#include "common/time.hpp"
#include "common/worker_starts.hpp"
#include "rendezvous/protocol/worker/worker_channel.hpp"

namespace cpprun {

// A live worker.
struct LiveWorker {
  LocalRank local_rank;
  Rank rank;
  int pid = 0;
  std::optional<Heartbeat> heartbeat{};  // unset: it has sent none
};

class ProcessHost {
 public:
  struct Options {
    // Random. Every worker has it in its environment (CPPRUN_TOKEN), which identifies this agent's
    // processes in /proc.
    std::string token;
    bool use_cgroup = true;  // put the workers into a cgroup of their own, where possible
    // Abstract unix socket of the worker channel (worker_channel.hpp); other users must not be able
    // to guess it. Empty: no channel.
    std::string channel_name{};
    // The workers' memory for snapshots, if other parts of the agent serve it too. Null: the host
    // makes its own.
    std::shared_ptr<Arenas> arenas{};
    // Reads error files. Null: the host makes its own.
    std::shared_ptr<IoThread> io{};
    // How the workers of the next round are forked, given their number; its result is called on the
    // spawn thread. Null, or a null result: all workers are spawned.
    std::function<WorkerFork(size_t workers)> worker_fork{};
  };
  // EndedBeforeStep of on_milestone comes before on_end.
  struct Events : WorkerEvents {
    // A worker was started; a later worker may still fail to start. Without a reason it was forked.
    // May be unset, like all events without another note.
    std::function<void(LocalRank, Rank, int pid, std::optional<SpawnReason>)> on_start{};
    // All workers of start() were spawned. Not called if a stop came first.
    std::function<void()> on_started{};
    // A worker could not be started. No process of those before it is left; their exits are not
    // reported, except for those that had ended before. Called instead of on_all_workers_gone(),
    // unless a stop came first. The error names the program and the reason.
    std::function<void(const Error&)> on_start_failed{};
    // A start has not returned for limits::kSpawnTimeout, so the file system of its program does
    // not answer; once per round. The host continues to wait, and reports exits from now on.
    std::function<void(LocalRank, const std::string& program)> on_slow_start{};
    // A worker reported that it is ready; once per worker and round.
    std::function<void(LocalRank)> on_ready{};
    // The last heartbeat of a worker that has ended after at least one step. Comes before
    // on_failure() and on_end().
    std::function<void(const Heartbeat&)> on_last_beat{};
    // A worker has failed. Its on_end() follows, once the exits before it are reported and its last
    // lines are read. Not called for a worker that the agent's signal ended.
    std::function<void(const WorkerExit&)> on_failure{};
    // A survivor has become a worker of this round; instead of on_start(). `step`: the last one
    // that it had completed; -1: none.
    std::function<void(LocalRank, Rank, int pid, int64_t step)> on_kept{};
    // A worker's exit; once for each started worker, in the kernel's order. Must be set.
    std::function<void(const WorkerExit&)> on_end;
    // After the last worker's exit: none of its processes is left, and all output is written. Once
    // per start().
    std::function<void()> on_all_workers_gone;
    // After stop_but_survivors(): all other workers are gone, in the same sense, and these have
    // left their process group. on_all_workers_gone() still follows if they end before the next
    // start().
    std::function<void()> on_workers_released{};
    // SIGKILL did not end these processes within limits::kKillTimeout. on_all_workers_gone() comes
    // only after they have ended. Repeated each second until then.
    std::function<void(std::vector<StuckProcess>)> on_stuck{};
    // The reader closed the launcher's stdout. The host closes the workers' stdout too (they get
    // EPIPE or SIGPIPE); `continues`: streams that also go to files continue.
    std::function<void(bool continues)> on_stdout_closed;
    // A line for the log at INFO: all workers are ready, or the last heartbeat of a failed worker.
    std::function<void(const std::string&)> on_note;
    // A signal (SIGSTOP) has stopped a worker; may come again while it is stopped.
    std::function<void()> on_stopped;
    // Whether this node holds a worker lease now. Asked before a worker gives a snapshot its final
    // name. Unset: always true.
    std::function<bool()> holds_worker_lease;
  };

  ProcessHost(boost::asio::io_context& loop, Options options, Events events);
  // Kills all processes without grace. The kernel reaps those that survive SIGKILL later.
  ~ProcessHost();
  ProcessHost(const ProcessHost&) = delete;

  // Kills all processes and waits for their end, at most limits::kEndingTimeout after the first
  // SIGKILL. Reports no exits. Returns the processes that are still there.
  std::vector<StuckProcess> kill_everything();

  // Starts all workers of a round, in order, on the spawn thread; on_started() or on_start_failed()
  // follows, never within the call; the exits of workers follow after that. Requires: is_idle(), or
  // on_workers_released() came last.
  // `files`: the open log files of all routes; the caller gives them up off the loop after that
  // event, because close() may block. Survivors, if on_workers_released() came, become the workers
  // of their local ranks.
  void start(const std::vector<WorkerSpec>& workers, const LogFiles& files);

  // The name of the workers' socket; empty: there is no channel.
  const std::string& channel_name() const { return options_.channel_name; }

  // Like stop(), but asks workers that can regroup to leave their process group instead, except the
  // `hung` one. Those that have not within `limit` get the signal too. on_workers_released() or
  // on_all_workers_gone() follows.
  void stop_but_survivors(int signal, Duration grace, Duration limit,
                          std::optional<LocalRank> hung);

  // Sets the stop request on the workers' pages and refuses commits from now on. Sends `signal` and
  // SIGCONT (for stopped workers) to every live worker's group, and SIGKILL to all after `grace`. A
  // later call can shorten the grace. The exits are marked is_stopped_by_us. A worker whose start
  // is under way gets the signal too, if the start ends within limits::kStopStartTimeout.
  void stop(int signal, Duration grace);

  // Whether a worker saves on request.
  bool can_save() const {
    return std::ranges::any_of(workers_, [this](const auto& w) { return can_save(w.second); });
  }
  // Like stop(), but workers that save on request (worker_page.hpp) get no signal before the end of
  // the grace, and may commit until end_saving().
  void stop_saving(int signal, Duration grace);
  // Sends the signal to those workers too: their snapshot can no longer become complete.
  void end_saving(int signal);

  // Until the end of the round, a process that survives SIGKILL counts as stuck after
  // limits::kUrgentKillTimeout, which is shorter.
  void be_urgent();
  // The processes that count as stuck now.
  std::vector<StuckProcess> stuck() { return unended(stuck_after_); }

  // From now on the end of a round waits at most a second for a console that accepts no output,
  // because the agent was asked to end.
  void hurry();
  // Calls `done` when all output of ended rounds is written: at once while a round runs, and after
  // hurry().
  void await_output(std::function<void()> done);

  // Sends `signal` to every worker's group, and nothing else.
  void forward(int signal);

  // Stops the live workers' groups (SIGSTOP) until `wait` returns. Those that were stopped before
  // stay stopped.
  void suspend_during(const std::function<void()>& wait);

  // Sends `signal` to one worker's group. False: the worker is not alive.
  bool forward_to(LocalRank worker, int signal);

  bool is_idle() const { return !is_running_; }
  const WorkerStarts& starts() const { return starts_; }  // only its counts of workers are set
  std::vector<int> pids() const;                          // of live workers, ordered by local rank
  std::vector<LiveWorker> live() const;                   // by local rank
  // Unset: the worker has ended or never existed. Valid until the next event of the loop.
  std::optional<int> pid_of(int local_rank) const;
  // Of its last heartbeat; unset: it sent none.
  std::optional<int64_t> step_of(int local_rank) const;
  // The newest heartbeats of so many workers of the round, live or not, by local rank.
  std::vector<std::optional<Heartbeat>> heartbeats(int64_t workers) const;
  // The live workers, ordered by local rank, with their heartbeats; without what the caller samples
  // from /proc, off the loop (process_sampler.hpp).
  std::vector<StackTarget> look() const;

 private:
  using Guard = boost::asio::executor_work_guard<boost::asio::io_context::executor_type>;

  // Survivors.
  bool can_save(const WorkerProcess& worker) const {
    return channel_ && channel_->can_save(static_cast<int>(worker.local_rank().value));
  }
  bool is_spared(int pid) const { return asked_.contains(pid) || released_.contains(pid); }
  bool has_unreleased() const { return workers_.size() > released_.size(); }
  void ask_to_regroup(std::optional<LocalRank> hung);
  void forget_survivors();
  void on_regroup_time();
  void on_released(int local_rank, int64_t step);
  void hold_survivors();
  std::set<int> enter_round();
  void take_survivor(StartingWorker& starting);

  // A round's start: all workers or none.
  void begin_round(const std::vector<WorkerSpec>& specs);
  Status open_output(const std::vector<WorkerSpec>& specs);
  void take_outcomes();
  void on_whole_start();
  void take_worker(StartingWorker& starting, Spawned spawned);
  void fail_start(const Error& error);
  void stop_starts(int signal, Duration grace);
  void cancel_starts();
  void kill_start();
  void watch_starts();
  // Their events come later only: this object is complete then.
  RoundOutput::Events output_events();
  ExitReporter::Events exit_events();
  void reap_killed(Instant until);

  // Events.
  void watch(WorkerProcess& worker);
  void watch_workers();
  void watch_children();
  bool has_stopped_worker() const;
  void on_dead(int pid);
  void open_channel();
  void on_ready(int local_rank);
  std::string commit_refusal() const;
  // What the worker reported over its channel; unset: nothing. Sets the step of `end`.
  std::optional<ErrorReport> final_report(WorkerExit& end);
  void stop_all(int signal, Duration grace);
  void on_grace_over();
  // Of the first SIGKILL to a process that is still there.
  std::optional<Instant> first_kill() const;
  std::vector<StuckProcess> unended(Duration least);  // at least `least` after SIGKILL
  void watch_killed();
  void on_stuck_time();
  void end_output_if_due();
  void limit_output_wait();
  void sweep_soon();
  void sweep();
  void look_for_orphans();
  void finish_if_done();
  template <class Call>
  void post(Call call);  // onto the loop, from any thread; dropped after this object's destruction

  boost::asio::io_context& loop_;
  Options options_;
  Events events_;
  Lifetime lifetime_;
  const std::shared_ptr<LoopPoster> poster_;
  const std::shared_ptr<IoThread> io_ = options_.io ? options_.io : std::make_shared<IoThread>();
  std::optional<Cgroup> cgroup_;
  PendingStarts pending_starts_;
  std::optional<Error> start_error_;  // the start failed; set until all its processes end
  OrphanSweep orphan_sweep_;
  OomCounter oom_;
  std::map<int, WorkerProcess> workers_;  // by pid; those that are not reaped
  std::set<int> traced_;                  // those that are dead while a tracer holds their status
  std::set<int> saving_;                  // those that save on request and got no signal
  std::set<int> asked_;                   // those that are to leave their process group
  std::map<int, int64_t> released_;       // those that have, with their last steps
  bool is_holding_ = false;               // released_ wait for the next start()
  bool is_regroup_due_ = false;           // when all workers have started
  int regroup_signal_ = 0;                // for those of asked_ that are late
  Duration regroup_grace_{};
  ExitReporter exits_;
  std::optional<Instant> killed_at_;  // first SIGKILL to the round's workers
  Duration stuck_after_{};            // after killed_at_, a survivor counts as stuck
  Instant next_stuck_report_;         // next call of on_stuck() at the earliest
  Timer stuck_timer_{loop_, [this] { on_stuck_time(); }};
  Timer regroup_timer_{loop_, [this] { on_regroup_time(); }};
  Timer kill_timer_;
  Timer sweep_timer_;
  boost::asio::signal_set child_signals_;
  const std::shared_ptr<Arenas> arenas_ =
      options_.arenas ? options_.arenas : std::make_shared<Arenas>(memory_for_arenas);
  std::optional<WorkerChannel> channel_;
  Instant started_at_;
  WorkerStarts starts_;
  size_t started_ = 0;          // workers of this round
  size_t ready_ = 0;            // workers that reported ready
  std::optional<Guard> guard_;  // keeps the loop running during a round
  bool is_running_ = false;
  bool is_stopping_ = false;  // stop() or end_saving() was called in this round
  bool is_hurried_ = false;
  std::function<void()> on_written_;  // of await_output()
  bool is_sweep_posted_ = false;
  bool has_started_ = true;     // on_started() was called in this round
  std::vector<int> unwatched_;  // workers whose end is not awaited yet
  RoundOutput output_;          // last member: its thread posts to the others
};

}  // namespace cpprun
