#pragma once

#include <sys/resource.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/process/channel/worker_channel.hpp"
#include "agent/process/cleanup/cgroup.hpp"
#include "agent/process/cleanup/orphan_sweep.hpp"
#include "agent/process/diagnostics/oom.hpp"
#include "agent/process/exit_queue.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/streams/output.hpp"
#include "agent/process/streams/stream_fds.hpp"
#include "agent/process/timer.hpp"
#include "agent/process/worker_process.hpp"

namespace cpprun {

class ProcessHost::Impl {
 public:
  Impl(boost::asio::io_context& loop, Options options, Events events);
  ~Impl();

  Status start(const std::vector<WorkerSpec>& specs);
  std::vector<StuckProcess> kill_everything();
  void stop(int signal, Duration grace);
  void stop_saving(int signal, Duration grace);
  void end_saving(int signal);
  void hurry();
  void forward(int signal);
  bool forward_to(LocalRank worker, int signal);
  bool is_idle() const { return !is_running_; }
  void be_urgent();
  std::vector<StuckProcess> stuck() { return unended(stuck_after_); }
  std::vector<int> pids() const;
  std::vector<LiveWorker> live() const;
  std::optional<int> pid_of(int local_rank) const;
  std::optional<int64_t> step_of(int local_rank) const;
  std::vector<StackTarget> observe_workers() const;
  const std::string& channel_name() const { return options_.channel_name; }

 private:
  using Guard = boost::asio::executor_work_guard<boost::asio::io_context::executor_type>;

  // A round's start: all workers or none.
  Status start_all(const std::vector<WorkerSpec>& specs, std::vector<OutputStream>& streams);
  Status start_one(const WorkerSpec& spec, bool is_alone, SpawnContext& context,
                   SharedLogFiles& shared, std::vector<OutputStream>& streams);
  Result<std::string> program_of(const WorkerSpec& spec);
  std::vector<std::string> with_token(const std::vector<std::string>& environment) const;
  Status open_output();
  void add_streams(std::vector<OutputStream> streams);
  void run();
  void reap_killed(Instant until);

  // Events.
  void watch(WorkerProcess& worker);
  void watch_children();
  bool has_stopped_worker() const;
  void watch_window();
  void resize_terminals();
  void on_dead(int pid);
  void open_channel();
  void on_ready(int local_rank);
  std::string commit_refusal() const;
  void ask_to_stop();
  bool can_save(int local_rank) const;
  void read_final_report(WorkerExit& end);
  void stop_all(int signal, Duration grace);
  void on_grace_over();
  // Of the first SIGKILL to a process that is still there.
  std::optional<Instant> first_kill() const;
  std::vector<StuckProcess> unended(Duration least);  // at least `least` after SIGKILL
  void watch_killed();
  void on_stuck_time();
  void on_lines(int local_rank, std::vector<std::string> lines);
  void on_output_drained();
  void limit_output_wait();
  void sweep_soon();
  void look();
  void report_exits();
  void finish_if_done();
  template <class Call>
  void post(Call call);  // onto the loop, from any thread; dropped after this object's destruction

  boost::asio::io_context& loop_;
  Options options_;
  Events events_;
  std::shared_ptr<int> lifetime_ =
      std::make_shared<int>();  // shared: pending handlers test whether this object still exists
  std::optional<Cgroup> cgroup_;
  rlimit descriptors_{};  // the limit that workers get: the one before the launcher raised it
  OrphanSweep orphan_sweep_;
  OomCounter oom_;
  std::map<int, WorkerProcess> workers_;  // by pid; those that are not reaped
  std::set<int> traced_;                  // those that are dead while a tracer holds their status
  std::set<int> saving_;                  // those that save on request and got no signal
  std::map<int, bool> has_lines_;         // by local rank: the agent reads its stderr
  ExitQueue ends_;
  std::optional<Instant> killed_at_;  // first SIGKILL to the round's workers
  Duration stuck_after_{};            // after killed_at_, a survivor counts as stuck
  Instant next_stuck_report_;         // next call of on_stuck() at the earliest
  Timer stuck_timer_{loop_, [this] { on_stuck_time(); }};
  Timer kill_timer_;
  Timer sweep_timer_;
  Timer lines_timer_;
  Timer drain_timer_{loop_, [this] { on_output_drained(); }};
  boost::asio::signal_set child_signals_;
  boost::asio::signal_set window_signals_;
  const std::shared_ptr<Arenas> arenas_ =
      options_.arenas ? options_.arenas : std::make_shared<Arenas>(memory_for_arenas);
  std::optional<WorkerChannel> channel_;
  Instant started_at_;
  size_t started_ = 0;          // workers of this round
  size_t ready_ = 0;            // workers that reported ready
  std::optional<Guard> guard_;  // keeps the loop running during a round
  bool is_running_ = false;
  bool is_stopping_ = false;  // stop() or end_saving() was called in this round
  bool is_drained_ = true;
  bool is_hurried_ = false;
  bool has_terminals_ = false;  // a worker of any round had a terminal
  bool is_sweep_posted_ = false;
  std::string found_name_, found_path_, found_program_;  // the last search on PATH
  std::unique_ptr<Output> output_;  // last member: its thread posts to the others
};

}  // namespace cpprun
