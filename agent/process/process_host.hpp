// ProcessHost: the seam between the agent and Linux processes. Starts the workers of a round, tells
// how each ended, stops them, and sees to it that nothing they started stays behind.
//
// Not a policy: who is restarted, and when, is decided above. Everything happens on the loop's
// thread, which must live as long as the host (parent-death signals are tied to the thread that
// spawns). Only this class ever waits for children of the agent.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/diagnostics/stack_collector.hpp"
#include "agent/process/diagnostics/stuck_process.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/heartbeat.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/worker/worker_channel.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

class Arenas;

// Where one stream of a worker goes. File only: the worker writes it itself. Console: whole lines
// through the agent.
struct StreamRoute {
  std::string file;        // empty: no file
  bool to_console = true;  // neither file nor console: /dev/null
  std::string prefix;      // before each console line
  std::vector<std::string>
      duplicate_filters;  // lines that contain one of these are also written, with prefix, to ...
  std::string duplicate_file;  // ... this file, shared by all workers of the round
};

struct WorkerSpec {
  LocalRank local_rank;
  Rank rank;
  std::vector<std::string>
      argv;  // argv[0] is looked up on PATH of `environment` unless it has a slash
  std::vector<std::string> environment;  // complete, "NAME=value"
  std::vector<int> cpus{};               // on which it may run; empty: as we
  StreamRoute out;
  StreamRoute err;
  std::string error_file;  // read when the worker has ended; empty: none
};

// A worker that lives, as it stands now.
struct LiveWorker {
  LocalRank local_rank;
  Rank rank;
  int pid = 0;
  std::optional<Heartbeat> heartbeat{};  // nothing: it has said nothing yet
};

class ProcessHost {
 public:
  struct Options {
    std::string
        token;  // random, in every worker's environment (CPPRUN_TOKEN); marks what is ours in /proc
    bool use_cgroup = true;  // join a cgroup of our own where one can be made
    // Abstract unix socket on which workers reach us (worker_channel.hpp); nobody else may guess
    // it. Empty: none.
    std::string channel_name{};
    // The workers' memory for snapshots, if somebody else serves it too. Null: the host's own.
    std::shared_ptr<Arenas> arenas{};
  };
  struct Events {
    // A worker was spawned, within start(); another one may still fail to. Unset: nobody asks.
    std::function<void(LocalRank, Rank, int pid)> on_start{};
    // A worker has said that it has set itself up; once per worker and round. Unset: nobody asks.
    std::function<void(LocalRank)> on_ready{};
    // How far a worker is on its way to its first step: worker_channel.hpp. EndedBeforeStep comes
    // before on_end. Unset: nobody asks.
    std::function<void(int local_rank, WorkerMilestone word)> on_milestone{};
    // A worker's end, once for each started worker, in the order in which the kernel told us.
    std::function<void(const WorkerExit&)> on_end;
    // After the last worker's end: nothing it started lives, all its output is written. Once per
    // start().
    std::function<void()> on_all_workers_gone;
    // SIGKILL has not ended these in its time (limits::kKillTimeout), so on_all_workers_gone()
    // does not come before they have gone by themselves. Comes again each second until then. Unset:
    // nobody asks.
    std::function<void(std::vector<StuckProcess>)> on_stuck{};
    // Our own stdout was closed by its reader; the workers' stdout is closed too (they get EPIPE or
    // SIGPIPE).
    std::function<void(bool goes_on)> on_stdout_closed;  // files of that stream go on
    // Something worth a line at INFO: all workers have said that they are ready, or how far one was
    // that failed.
    std::function<void(const std::string&)> on_note;
    // A worker has been stopped by a signal (SIGSTOP); may come again while it is. Unset: nobody
    // looks.
    std::function<void()> on_stopped;
    // May this node's workers count as its job's only world now? Asked before a worker gives a
    // snapshot its final name. Unset: always.
    std::function<bool()> holds_worker_lease;
    // A worker has committed the snapshot of `step`. `path` is absolute, and as hostile as the
    // worker; it may come often, and more than once for a step.
    std::function<void(int local_rank, int64_t step, const std::string& path)> on_snapshot;
    // A worker could not use the snapshot that its round was to begin with, and went on from that
    // of this step (-1: none). As hostile, and may come often.
    std::function<void(int local_rank, int64_t step)> on_fell_back;
    // With a fault plan: worker_channel.hpp.
    std::function<void(int local_rank, const channel::FaultPermitRequest&,
                       std::function<void(bool)> answer)>
        on_fault_permit_request;
    std::function<void(int local_rank, const channel::Began&)> on_began;
  };

  ProcessHost(boost::asio::io_context& loop, Options options, Events events);
  // Kills what is left, without waiting for grace. What SIGKILL does not end is reaped by the
  // kernel from then on.
  ~ProcessHost();
  ProcessHost(const ProcessHost&) = delete;

  // Does so now, and waits until they are gone, at most limits::kEndingTimeout after the first
  // SIGKILL; nothing is told of their ends. Returns those that have not gone.
  std::vector<StuckProcess> kill_everything();

  // Starts all workers of a round, in order. Requires: is_idle(). On an error the ones already
  // started are killed and their ends are not reported; the text names the program and the reason.
  Status start(const std::vector<WorkerSpec>& workers);

  // What workers need to reach us: the channel's name, empty if there is no channel.
  const std::string& channel_name() const;

  // Sets the stop wish, refuses workers leave to commit from now on, then
  // sends `signal` (and CONT, so that stopped ones see it) to every live worker's group, and KILL
  // to all after `grace`. A later call with a shorter grace shortens it. Ends are marked
  // is_stopped_by_us.
  void stop(int signal, Duration grace);

  // The same, but workers that have said that they save when asked (worker_page.hpp) are only
  // asked, and get no signal before the grace is over; until end_saving() they may commit.
  void stop_saving(int signal, Duration grace);
  // Those get the signal after all: what they wanted to save can't be saved.
  void end_saving(int signal);

  // Until the end of the round, what SIGKILL does not end counts as stuck after the shorter
  // limits::kUrgentKillTimeout.
  void be_urgent();
  // What counts as stuck now.
  std::vector<StuckProcess> stuck();

  // From now on a round's end waits for a console that takes nothing no longer than a second:
  // whoever told us to go is not kept waiting by a reader who does not read.
  void hurry();

  // Forwards a signal without any further plan.
  void forward(int signal);

  // The same to one worker's group. False: it does not live.
  bool forward_to(LocalRank worker, int signal);

  bool is_idle() const;
  std::vector<int> pids() const;         // of live workers, by local rank
  std::vector<LiveWorker> live() const;  // by local rank
  // Nothing: it has ended, or there never was one. Good until the next event of the loop.
  std::optional<int> pid_of(int local_rank) const;
  std::optional<int64_t> step_of(int local_rank) const;  // that it last said; nothing: none
  // What there is to see of the live workers, by local rank. Reads some files of /proc.
  std::vector<StackTarget> look() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
