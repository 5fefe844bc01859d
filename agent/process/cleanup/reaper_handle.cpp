#include "agent/process/cleanup/reaper_handle.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "agent/process/cleanup/helper_start.hpp"
#include "agent/process/cleanup/reaper_process.hpp"
#include "common/check.hpp"
#include "common/machine/reap.hpp"
#include "common/thread/blocked_signals.hpp"
#include "common/thread/loop_mark.hpp"
#include "common/thread/process_limits.hpp"

namespace cpprun {
namespace {

UniqueFd open_pidfd(int pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// The child's process id. A signal (Ctrl-C) must not end the child before it ignores signals.
int fork_reaper(const ReaperTask& task) {
  const Unblocking forked("the reaper process is no loop");
  const BlockedSignals blocked;
  const int pid = ::fork();
  if (pid == 0) run_reaper(task);
  return pid;
}

}  // namespace

ReaperHandle::~ReaperHandle() {
  end_child();
  if (page_ != nullptr) ::munmap(page_, sizeof *page_);
}

Result<std::unique_ptr<ReaperHandle>> ReaperHandle::start(const std::string& token,
                                                          const std::string& cgroup) {
  CPPRUN_CHECK(!token.empty());
  std::unique_ptr<ReaperHandle> made(new ReaperHandle(token, cgroup));
  if (Status ready = made->prepare(); !ready) return ready.error();
  if (Status forked = made->renew(); !forked) return forked.error();
  return made;
}

Status ReaperHandle::prepare() {
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.is_open()) return system_error("reaper process: eventfd", errno);
  void* page =
      ::mmap(nullptr, sizeof *page_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return system_error("reaper process: shared page", errno);
  page_ = new (page) ReaperPage;
  return {};
}

Status ReaperHandle::renew() {
  end_child();
  const UniqueFd agent = open_pidfd(::getpid());
  if (!agent.is_open()) return system_error("reaper process: a handle of our own process", errno);
  ReaperTask task;
  task.page = page_;
  task.agent = agent.get();
  task.agent_pid = ::getpid();
  task.wake = wake_.get();
  task.token = token_;
  task.cgroup = cgroup_.c_str();
  page_->wakes_at.store(0);
  const int pid = fork_reaper(task);
  if (pid < 0) {
    const int error = errno;
    Error failed = system_error("cannot start the reaper process", error);
    if (error == EAGAIN) failed.text += "; " + process_limits_text();
    return failed;
  }
  pid_ = pid;
  register_helper(pid);
  pidfd_ = open_pidfd(pid);
  return pidfd_.is_open() ? Status() : system_error("reaper process: its handle", errno);
}

bool ReaperHandle::set_deadline(Instant deadline) {
  const int64_t former = page_->deadline.exchange(deadline.nanoseconds());
  const bool has_killed = page_->killed_at.load() == former;
  // Else the reaper process wakes before that and reads it.
  if (deadline.nanoseconds() < page_->wakes_at.load()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t done = ::write(wake_.get(), &one, sizeof one);
  }
  return has_killed;
}

// The reaper process holds no state, so SIGKILL is safe.
void ReaperHandle::dismiss() const {
  if (pid_ != 0) ::kill(pid_, SIGKILL);
}

void ReaperHandle::leave() {
  pid_ = 0;
  pidfd_.reset();
}

void ReaperHandle::end_child() {
  if (pid_ == 0) return;
  dismiss();
  const Unblocking reaped("it runs no call that SIGKILL does not end");
  reap(pid_);
  unregister_helper(pid_);
  pid_ = 0;
  pidfd_.reset();
}

}  // namespace cpprun
