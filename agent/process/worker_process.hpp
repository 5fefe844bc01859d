// WorkerProcess: one started worker, from its spawn until it is reaped. It waits for the process
// and records facts; the owner decides what follows. OomCounter: whether the kernel's OOM killer
// ended a worker. Thread: the loop's.
#pragma once

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "agent/process/spawn/spawn.hpp"
#include "agent/process/worker_spec.hpp"
#include "common/failure/worker_exit.hpp"

namespace cpprun {

// Each OOM kill counts for one worker. Reads the nearest counter of the kernel that exists: that of
// the agent's own cgroup (v2, then v1), otherwise the machine's.
class OomCounter {
 public:
  OomCounter();
  void begin_round() { seen_ = read(); }  // forgets earlier kills
  bool take_kill();                       // true: a kill since then that no call has taken yet

 private:
  int64_t read() const;

  std::string file_;
  int64_t seen_ = 0;
};

class WorkerProcess {
 public:
  WorkerProcess(boost::asio::io_context& loop, Spawned spawned, const WorkerSpec& spec);

  int pid() const { return pid_; }
  LocalRank local_rank() const { return end_.local_rank; }
  Rank rank() const { return end_.rank; }

  // Calls `on_dead` once when the process has ended; never after this object's destruction.
  void async_wait(std::function<void(boost::system::error_code)> on_dead);

  bool is_dead() const;  // ended, perhaps not yet reaped; one system call
  // Dead, and the kernel gives this process its status. A tracer gets the status first and may keep
  // it for any time; SIGCHLD comes when it releases the process.
  bool has_status() const;
  bool is_stopped() const;  // by a signal, not by a debugger
  bool wait_dead(int milliseconds) const;
  void signal_group(int signal) const;
  void mark_stopped() { end_.is_stopped_by_us = true; }
  // The worker survived its round, and is `spec` in the next one, which begins now.
  void enter_round(const WorkerSpec& spec);

  // Records how the worker ended. Requires: has_status(). Does not reap it, so that its pid still
  // names its process group.
  const WorkerExit& record_exit(OomCounter& oom);
  const std::string& error_file() const { return error_file_; }    // "": none
  const std::string& stderr_file() const { return stderr_file_; }  // own_stderr_file()
  // Reaps the process and returns its exit, without the error report. Call once, after
  // record_exit().
  WorkerExit take_exit();

 private:
  int pidfd() const;  // the const_cast in it only asks for a number
  // The child's state, if it is one of `states` (of waitid()); does not reap.
  siginfo_t peek(int states) const;

  int pid_;
  boost::asio::posix::stream_descriptor pidfd_;
  std::string error_file_;
  std::string stderr_file_;
  WorkerExit end_;
};

}  // namespace cpprun
