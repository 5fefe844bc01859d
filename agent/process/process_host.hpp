// ProcessHost: the agent's interface to Linux processes. Starts the workers of a round, reports how
// each one ended, stops them, and removes every process that they leave behind.
//
// It decides no policy: the agent's core decides about restarts. Everything runs on the loop's
// thread, which must live as long as the host, because parent-death signals belong to the thread
// that spawns. No other class waits for children of the agent.
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

// Destination of one stream of a worker. File only: the worker writes the file itself. Console: the
// agent copies whole lines.
struct StreamRoute {
  std::string file;        // empty: no file
  bool to_console = true;  // false, and no file: /dev/null
  std::string prefix;      // before each console line
  std::vector<std::string>
      // Lines that contain one of these also go, with prefix, to duplicate_file.
      duplicate_filters;
  std::string duplicate_file;  // shared by all workers of the round
};

struct WorkerSpec {
  LocalRank local_rank;
  Rank rank;
  std::vector<std::string> argv;  // argv[0] without a slash is searched on PATH of `environment`.
  std::vector<std::string> environment;  // complete, "NAME=value"
  std::vector<int> cpus{};               // that it may use; empty: the agent's own
  StreamRoute out;
  StreamRoute err;
  std::string error_file;  // read after the worker's end; empty: none
};

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
  };
  struct Events {
    // Called within start() for each spawned worker; a later worker may still fail to start. May be
    // unset, like all events without another note.
    std::function<void(LocalRank, Rank, int pid)> on_start{};
    // A worker reported that it is ready; once per worker and round.
    std::function<void(LocalRank)> on_ready{};
    // A worker's milestones on the way to its first step (worker_channel.hpp). EndedBeforeStep
    // comes before on_end.
    std::function<void(int local_rank, WorkerMilestone word)> on_milestone{};
    // A worker's exit; once for each started worker, in the kernel's order. Must be set.
    std::function<void(const WorkerExit&)> on_end;
    // After the last worker's exit: none of its processes is left, and all output is written. Once
    // per start().
    std::function<void()> on_all_workers_gone;
    // SIGKILL did not end these processes within limits::kKillTimeout. on_all_workers_gone() comes
    // only after they have ended. Repeated each second until then.
    std::function<void(std::vector<StuckProcess>)> on_stuck{};
    // The reader closed the launcher's stdout. The host closes the workers' stdout too (they get
    // EPIPE or SIGPIPE); `goes_on`: streams that also go to files continue.
    std::function<void(bool goes_on)> on_stdout_closed;
    // A line for the log at INFO: all workers are ready, or the last heartbeat of a failed worker.
    std::function<void(const std::string&)> on_note;
    // A signal (SIGSTOP) has stopped a worker; may come again while it is stopped.
    std::function<void()> on_stopped;
    // Whether this node holds a worker lease now. Asked before a worker gives a snapshot its final
    // name. Unset: always true.
    std::function<bool()> holds_worker_lease;
    // A worker committed the snapshot of `step`. `path` is absolute and otherwise unchecked input
    // of the worker. May come often, and more than once for a step.
    std::function<void(int local_rank, int64_t step, const std::string& path)> on_snapshot;
    // A worker could not load the round's snapshot and resumed from the one of `step` instead (-1:
    // none). Unchecked input; may come often.
    std::function<void(int local_rank, int64_t step)> on_fell_back;
    // Used with a fault plan: worker_channel.hpp.
    std::function<void(int local_rank, const channel::FaultPermitRequest&,
                       std::function<void(bool)> answer)>
        on_fault_permit_request;
    std::function<void(int local_rank, const channel::Began&)> on_began;
  };

  ProcessHost(boost::asio::io_context& loop, Options options, Events events);
  // Kills all processes without grace. The kernel reaps those that survive SIGKILL later.
  ~ProcessHost();
  ProcessHost(const ProcessHost&) = delete;

  // Kills all processes and waits for their end, at most limits::kEndingTimeout after the first
  // SIGKILL. Reports no exits. Returns the processes that are still there.
  std::vector<StuckProcess> kill_everything();

  // Starts all workers of a round, in order. Requires: is_idle(). On an error it kills the workers
  // that it has started and reports no exits of them; the error names the program and the reason.
  Status start(const std::vector<WorkerSpec>& workers);

  // The name of the workers' socket; empty: there is no channel.
  const std::string& channel_name() const;

  // Sets the stop request on the workers' pages and refuses commits from now on. Sends `signal` and
  // SIGCONT (for stopped workers) to every live worker's group, and SIGKILL to all after `grace`. A
  // later call can shorten the grace. The exits are marked is_stopped_by_us.
  void stop(int signal, Duration grace);

  // Like stop(), but workers that save on request (worker_page.hpp) get no signal before the end of
  // the grace, and may commit until end_saving().
  void stop_saving(int signal, Duration grace);
  // Sends the signal to those workers too: their snapshot can no longer become complete.
  void end_saving(int signal);

  // Until the end of the round, a process that survives SIGKILL counts as stuck after
  // limits::kUrgentKillTimeout, which is shorter.
  void be_urgent();
  // The processes that count as stuck now.
  std::vector<StuckProcess> stuck();

  // From now on the end of a round waits at most a second for a console that accepts no output,
  // because the agent was asked to end.
  void hurry();

  // Sends `signal` to every worker's group, and nothing else.
  void forward(int signal);

  // Sends `signal` to one worker's group. False: the worker is not alive.
  bool forward_to(LocalRank worker, int signal);

  bool is_idle() const;
  std::vector<int> pids() const;         // of live workers, ordered by local rank
  std::vector<LiveWorker> live() const;  // by local rank
  // Unset: the worker has ended or never existed. Valid until the next event of the loop.
  std::optional<int> pid_of(int local_rank) const;
  // Of its last heartbeat; unset: it sent none.
  std::optional<int64_t> step_of(int local_rank) const;
  // Observes the live workers, ordered by local rank. Reads some files of /proc.
  std::vector<StackTarget> look() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
