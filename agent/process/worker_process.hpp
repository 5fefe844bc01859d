// WorkerProcess: one started worker, from its spawn to its reaped end. Only the wait and the facts;
// what is done with them is decided above. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <string>

#include "agent/process/diagnostics/oom.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/spawn/spawn.hpp"
#include "common/failure/worker_exit.hpp"

namespace cpprun {

class WorkerProcess {
 public:
  WorkerProcess(boost::asio::io_context& loop, Spawned spawned, const WorkerSpec& spec);

  int pid() const { return pid_; }
  LocalRank local_rank() const { return end_.local_rank; }
  Rank rank() const { return end_.rank; }

  // Calls `on_dead` once when the process has ended; never if this object is gone by then.
  void async_wait(std::function<void(boost::system::error_code)> on_dead);

  bool is_dead() const;  // ended, perhaps not yet reaped; asks the kernel
  // It is dead, and the kernel gives us its status. A tracer of it gets that first, and may keep it
  // for as long as it likes; SIGCHLD comes when it has let go.
  bool has_status() const;
  bool is_stopped() const;  // by a signal, not by a debugger
  bool wait_dead(int milliseconds) const;
  void signal_group(int signal) const;
  void mark_stopped() { end_.is_stopped_by_us = true; }

  // How it ended. Requires: has_status(). Leaves it unreaped, so its number still is its group's
  // name.
  const WorkerExit& record_exit(OomCounter& oom);
  // Reaps it, reads its error file, and gives the whole account. Once, after record_exit().
  WorkerExit take_exit();

 private:
  int pid_;
  boost::asio::posix::stream_descriptor pidfd_;
  std::string error_file_;
  WorkerExit end_;
};

}  // namespace cpprun
