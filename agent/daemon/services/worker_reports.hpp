// WorkerReports: what this node's agent reports of its workers to the coordinator: their progress,
// processes and log lines for the dashboard, their log files for tools, and their compute times.
// Thread: the loop's. Owner: the daemon, with the connection.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "agent/daemon/services/compute_reporter.hpp"
#include "agent/daemon/services/log_file_server.hpp"
#include "agent/daemon/services/log_tail_reporter.hpp"
#include "agent/daemon/services/process_reporter.hpp"
#include "agent/daemon/services/progress_reporter.hpp"
#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class WorkerReports {
 public:
  struct Callbacks {
    // The newest heartbeats by local rank, also of workers that have ended; unset: none was sent.
    std::function<std::vector<std::optional<Heartbeat>>()> heartbeats;
    std::function<RoundNumber()> round;  // the newest round with this node
    std::function<LogTailReporter::Files(int local_rank)> files;
    std::function<std::vector<LiveWorker>()> live;  // empty before the workers have started
    std::function<void(const control::AgentMessage&)> send;
    int workers = 0;
  };

  WorkerReports(boost::asio::io_context& loop, const Callbacks& callbacks);

  void on_message(const control::CoordinatorMessage& message);
  void on_started() { processes_.on_started(); }  // all workers of a round
  // Calls `then` when the agent may act on this message: on the result of the job only after the
  // readers of log files have the last lines, within limits::kLogEndWait.
  void before(const control::CoordinatorMessage& message, std::function<void()> then);
  void on_workers_start(const control::RankAssignment& assignment) {
    log_files_.on_workers_start(assignment.round, assignment.base_rank);
  }
  void on_stepped() { compute_.on_stepped(); }  // a worker has finished its first step
  // All workers of the round have ended, and their last heartbeats can still be read.
  void on_round_ended();
  void on_disconnected();

 private:
  ProgressReporter progress_;
  ProcessReporter processes_;
  LogTailReporter tails_;
  LogFileServer log_files_;
  ComputeReporter compute_;
};

}  // namespace cpprun
