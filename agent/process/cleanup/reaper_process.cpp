#include "agent/process/cleanup/reaper_process.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "agent/process/cleanup/cgroup.hpp"
#include "agent/process/proc_files.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/suspension.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/unique_fd.hpp"

namespace cpprun {
namespace {

constexpr int64_t kNever = INT64_MAX;
constexpr int kCgroupDepth = 8;
// Nanoseconds between two scans of /proc while killed processes exit.
constexpr long kScanPauseNs = 2'000'000;
// Milliseconds between two scans while the workers must not run, but may run again.
constexpr int kHoldPauseMs = 10;

// Only a fault, SIGKILL or its own decision ends the reaper process.
void ignore_signals() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (int number = 1; number < NSIG; ++number) {
    const bool is_fault = number == SIGSEGV || number == SIGBUS || number == SIGILL ||
                          number == SIGFPE || number == SIGABRT || number == SIGSYS;
    if (!is_fault) ::sigaction(number, &ignore, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// A reader of the agent's output must see end of file although the reaper process still runs.
void drop_streams() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; null >= 0 && fd < 3; ++fd) ::dup2(null, fd);
}

void close_all_but(std::array<int, 2> kept) {
  std::ranges::sort(kept);
  unsigned from = 3;
  for (int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (number > from) ::syscall(SYS_close_range, from, number - 1, 0);
    from = number + 1;
  }
  ::syscall(SYS_close_range, from, ~0U, 0);
}

int to_pid(const char* name) {
  int pid = 0;
  for (; *name >= '0' && *name <= '9'; ++name) pid = pid * 10 + (*name - '0');
  return *name == '\0' ? pid : 0;
}

bool signal_if_marked(int proc, const char* name, std::string_view token, int signal) {
  const int pid = to_pid(name);
  // Opens the handle first: if the kernel reuses the pid meanwhile, the signal still goes to the
  // old process.
  UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!handle.is_open()) return false;
  const UniqueFd folder(::openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  UniqueFd environment(::openat(folder.get(), "environ", O_RDONLY | O_CLOEXEC));
  if (!environment.is_open() || !environment_carries(environment.get(), token)) return false;
  return ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0) == 0;
}

// Returns whether it sent the signal to a process. Skips pids up to `after`.
bool signal_all_marked(const ReaperTask& task, int after, int signal) {
  UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!proc.is_open()) return false;
  const int self = ::getpid();
  const int parent = ::getppid();
  bool is_any = false;
  for_each_entry(proc.get(), [&](const char* name, bool) {
    const int pid = to_pid(name);
    const bool is_of_cpprun = pid == self || pid == parent || pid == task.agent_pid;
    if (pid <= std::max(1, after) || is_of_cpprun) return;
    task.page->looked_at.store(pid);
    is_any |= signal_if_marked(proc.get(), name, task.token, signal);
  });
  return is_any;
}

// A child of the reaper process that scans /proc.
struct Searcher {
  UniqueFd process;  // pidfd; SIGCHLD is ignored, so the kernel reaps the child
  int pid = -1;      // -1: the process limit is reached, or an emulator refuses CLONE_PIDFD
};

constexpr int kFound = 1;  // value of ReaperPage::found

Searcher start_searcher(const ReaperTask& task, int after, int signal) {
  int handle = -1;
  // Plain clone: fork() would also run handlers for locks of threads, which this child does not
  // use.
  const long pid = ::syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, nullptr, &handle, nullptr, nullptr);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (signal_all_marked(task, after, signal)) task.page->found.store(kFound);
    ::_exit(0);
  }
  return {UniqueFd(handle), static_cast<int>(pid)};
}

// A read of a process's environment blocks while the lock of its memory is held, and a process that
// survives SIGKILL may hold it for ever. So a child reads. If it makes no progress, this function
// abandons it and starts another one behind the blocking pid. Returns whether another pass may find
// more.
bool search(const ReaperTask& task, int signal) {
  const Instant until = boot_now() + limits::kReaperScanTimeout;
  const auto most = static_cast<int>(limits::kReaperReadTimeout / std::chrono::milliseconds(1));
  ReaperPage& page = *task.page;
  page.found.store(0);
  bool was_blocked = false;
  for (int after = 0; boot_now() < until;) {
    page.looked_at.store(after);
    const Searcher searcher = start_searcher(task, after, signal);
    if (searcher.pid < 0) return signal_all_marked(task, after, signal);
    for (int last = after; boot_now() < until;) {
      pollfd end{searcher.process.get(), POLLIN, 0};
      if (::poll(&end, 1, most) == 1) return was_blocked || page.found.load() == kFound;
      const int at = page.looked_at.load();
      if (at != after && at == last) break;  // otherwise it makes progress, or has not begun
      last = at;
    }
    ::syscall(SYS_pidfd_send_signal, searcher.process.get(), SIGKILL, nullptr, 0);
    was_blocked = true;
    after = page.looked_at.load();
  }
  return false;
}

void kill_cgroup(const char* cgroup) {
  if (*cgroup == '\0') return;
  UniqueFd folder(::open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return;
  UniqueFd file(::openat(folder.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const ssize_t done = file.is_open() ? ::write(file.get(), "1", 1) : 0;
}

// Repeats until a scan finds no process: one may fork between the scan and its death.
void kill_workers(const ReaperTask& task) {
  const Instant until = boot_now() + limits::kReaperTimeout;
  const timespec pause{0, kScanPauseNs};
  kill_cgroup(task.cgroup);
  while (search(task, SIGKILL) && boot_now() < until) {
    ::nanosleep(&pause, nullptr);
    kill_cgroup(task.cgroup);
  }
}

// The reaper process was suspended past `deadline`, and the agent perhaps with it. The workers do
// not run until the agent has extended the deadline: SIGSTOP is repeated, because a scheduler that
// continues a job sends SIGCONT to one process after the other. Returns whether they may continue.
bool hold_workers(const ReaperTask& task) {
  const Instant until = boot_now() + limits::kResumeAnswerTimeout;
  const auto is_past = [&] { return boot_now().nanoseconds() >= task.page->deadline.load(); };
  pollfd agent{task.agent, POLLIN, 0};
  while (is_past() && boot_now() < until) {
    search(task, SIGSTOP);
    if (::poll(&agent, 1, kHoldPauseMs) == 1) return false;
  }
  if (is_past()) return false;
  search(task, SIGCONT);
  return true;
}

[[noreturn]] void clean_up_and_exit(const ReaperTask& task) {
  kill_workers(task);
  const Instant until = boot_now() + limits::kReaperTimeout;
  const timespec pause{0, kScanPauseNs};
  // Killed processes still count as members of the cgroup for a moment.
  while (*task.cgroup != '\0' && !remove_cgroup(AT_FDCWD, task.cgroup, kCgroupDepth) &&
         boot_now() < until) {
    ::nanosleep(&pause, nullptr);
  }
  ::_exit(0);
}

void arm(int timer, int64_t at) {
  itimerspec when{};  // all zero: off
  if (at != kNever) {
    at = std::max<int64_t>(at, 1);
    when.it_value = timespec{at / 1'000'000'000, at % 1'000'000'000};
  }
  ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace

bool environment_carries(int file, std::string_view token) {
  char buffer[16 * 1024];
  size_t held = 0;
  bool is_skipping = false;  // inside an entry that is longer than the buffer
  for (;;) {
    const ssize_t got = ::read(file, buffer + held, sizeof buffer - held);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return !is_skipping && carries_token({buffer, held}, token);
    held += static_cast<size_t>(got);
    const std::string_view text(buffer, held);
    const size_t end = text.rfind('\0');
    if (end == std::string_view::npos) {
      is_skipping |= held == sizeof buffer;
      if (is_skipping) held = 0;
      continue;
    }
    const size_t start = is_skipping ? text.find('\0') + 1 : 0;
    is_skipping = false;
    if (start <= end && carries_token(text.substr(start, end + 1 - start), token)) return true;
    held = text.size() - end - 1;
    ::memmove(buffer, buffer + end + 1, held);
  }
}

void run_reaper(const ReaperTask& task) {
  ::setsid();
  ::prctl(PR_SET_NAME, "cpprun-reaper", 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  ignore_signals();
  drop_streams();
  close_all_but({task.agent, task.wake});
  if (::chdir("/") < 0) ::_exit(1);
  const int timer = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  int64_t acted_on = kNever;  // the deadline at which it killed the workers
  for (;;) {
    const int64_t deadline = task.page->deadline.load();
    if (deadline != acted_on && boot_now().nanoseconds() >= deadline) {
      const Duration late = boot_now() - Instant::from_nanoseconds(deadline);
      const bool is_late = late >= limits::kReaperLateWakeup;
      if (is_late && hold_workers(task)) continue;
      task.page->killed_at.store(deadline);
      if (task.page->deadline.load() != deadline) continue;
      kill_workers(task);
      acted_on = deadline;
    }
    const int64_t wakes_at = deadline == acted_on ? kNever : deadline;
    task.page->wakes_at.store(wakes_at);
    if (task.page->deadline.load() != deadline)
      continue;  // the agent stored it before it could see wakes_at
    arm(timer, wakes_at);
    pollfd events[] = {{task.agent, POLLIN, 0}, {task.wake, POLLIN, 0}, {timer, POLLIN, 0}};
    ::poll(events, 3, -1);
    if (events[0].revents != 0) clean_up_and_exit(task);
    uint64_t count;
    if (events[1].revents != 0 && ::read(task.wake, &count, sizeof count) < 0) continue;
  }
}

}  // namespace cpprun
