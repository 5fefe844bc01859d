// ProcessReporter: sends the coordinator the pids, memory and log folder of this node's workers:
// when all have started, when a coordinator has registered this agent, and while the dashboard has
// readers. Otherwise it causes no wake-ups.
//
// Reads /proc/<pid>/statm, which takes no lock of the worker. Thread: the loop's. Owner:
// WorkerReports.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "agent/daemon/services/log_tail_reporter.hpp"
#include "agent/process/process_host.hpp"
#include "common/ids.hpp"
#include "common/loop/timer.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class ProcessReporter {
 public:
  struct Callbacks {
    std::function<std::vector<LiveWorker>()> live;
    std::function<RoundNumber()> round;  // the newest round with this node
    std::function<LogTailReporter::Files(int local_rank)> files;
    std::function<void(const control::WorkerProcesses&)> send;
  };

  ProcessReporter(boost::asio::io_context& loop, Callbacks callbacks)
      : callbacks_(std::move(callbacks)), timer_(loop, [this] { report(); }) {}

  void on_registered(bool is_wanted);  // by this coordinator
  void on_started();
  void on_watch(const control::Watch& watch);
  void on_round_ended() { has_workers_ = false; }
  void on_disconnected();

 private:
  void report();
  void send_if_new();

  Callbacks callbacks_;
  Timer timer_;
  bool is_wanted_ = false;
  bool has_workers_ = false;  // all workers of the round have started
  bool is_ticking_ = false;
  Instant watched_until_;
  std::optional<control::WorkerProcesses> last_sent_;
};

// The report about these workers. `memory_bytes`: of a pid.
control::WorkerProcesses processes_of(
    RoundNumber round, const std::vector<LiveWorker>& workers,
    const std::function<std::optional<int64_t>(int pid)>& memory_bytes);

// The folder above the folders of a worker's log files; empty: it has none, or the path is too long
// for a report.
std::string log_dir_of(const LogTailReporter::Files& files);

}  // namespace cpprun
