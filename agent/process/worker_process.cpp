#include "agent/process/worker_process.hpp"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/process/proc_files.hpp"
#include "agent/process/streams/stream_fds.hpp"
#include "common/check.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/own_cgroups.hpp"
#include "common/machine/reap.hpp"
#include "common/text.hpp"
#include "common/thread/loop_mark.hpp"

namespace cpprun {

OomCounter::OomCounter() {
  const std::string v2 = own_cgroups().unified.path + "/memory.events";
  const std::string v1 = own_cgroups().memory.path + "/memory.oom_control";
  for (const std::string& file : {v2, v1, std::string("/proc/vmstat")}) {
    file_ = file;
    if (read() >= 0) break;
  }
}

int64_t OomCounter::read() const {
  const Unblocking counters("the kernel's own file system");
  for (const std::string& line : text::split(read_small_file(file_), '\n')) {
    if (line.starts_with("oom_kill ")) return text::parse_int(line.substr(9)).value_or(-1);
  }
  return -1;
}

bool OomCounter::take_kill() {
  if (seen_ < 0 || read() <= seen_) return false;
  ++seen_;
  return true;
}

WorkerProcess::WorkerProcess(boost::asio::io_context& loop, Spawned spawned, const WorkerSpec& spec)
    : pid_(spawned.pid),
      pidfd_(loop),
      error_file_(spec.error_file),
      stderr_file_(own_stderr_file(spec)) {
  pidfd_.assign(spawned.pidfd.release());
  end_.local_rank = spec.local_rank;
  end_.rank = spec.rank;
  end_.pid = pid_;
  end_.started_at = spawned.started_at;
}

void WorkerProcess::enter_round(const WorkerSpec& spec) {
  error_file_ = spec.error_file;
  stderr_file_ = own_stderr_file(spec);
  end_.rank = spec.rank;
  end_.started_at = boot_now();
  end_.is_stopped_by_us = false;
}

void WorkerProcess::async_wait(std::function<void(boost::system::error_code)> on_dead) {
  pidfd_.async_wait(boost::asio::posix::stream_descriptor::wait_read, std::move(on_dead));
}

bool WorkerProcess::is_dead() const { return wait_dead(0); }

int WorkerProcess::pidfd() const {
  return const_cast<boost::asio::posix::stream_descriptor&>(pidfd_).native_handle();
}

bool WorkerProcess::wait_dead(int milliseconds) const {
  pollfd end{pidfd(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&end, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);  // SIGCHLD interrupted it, perhaps for this process
  return ready == 1;
}

siginfo_t WorkerProcess::peek(int states) const {
  siginfo_t info{};
  ::waitid(kPidfdType, static_cast<id_t>(pidfd()), &info, states | WNOHANG | WNOWAIT);
  return info;
}

bool WorkerProcess::has_status() const { return peek(WEXITED).si_pid == pid_; }

bool WorkerProcess::is_stopped() const { return peek(WSTOPPED).si_pid == pid_; }

void WorkerProcess::signal_group(int signal) const { ::kill(-pid_, signal); }

const WorkerExit& WorkerProcess::record_exit(OomCounter& oom) {
  const siginfo_t info = peek(WEXITED);
  CPPRUN_CHECK(info.si_pid == pid_);  // otherwise other code waited for this child
  end_.ended_at = boot_now();
  end_.ended_at_wall = wall_now();
  const bool is_exit = info.si_code == CLD_EXITED;
  end_.exit_code = is_exit ? info.si_status : -info.si_status;
  end_.has_core = info.si_code == CLD_DUMPED;
  // The agent's own SIGKILL is no OOM kill, whatever the counters show.
  if (end_.exit_code == -SIGKILL && !end_.is_stopped_by_us) end_.is_oom_kill = oom.take_kill();
  return end_;
}

WorkerExit WorkerProcess::take_exit() {
  siginfo_t info{};
  ::waitid(kPidfdType, static_cast<id_t>(pidfd()), &info, WEXITED | WNOHANG);
  boost::system::error_code ignored;
  pidfd_.close(ignored);
  return std::move(end_);
}

}  // namespace cpprun
