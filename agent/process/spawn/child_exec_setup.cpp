#include "agent/process/spawn/child_exec_setup.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// The child's code runs in the parent's memory: no instrumentation, and only syscall(), which no
// sanitizer intercepts.
#define CPPRUN_IN_CHILD __attribute__((noinline, no_sanitize("address", "thread", "undefined")))

namespace cpprun {
namespace {

struct KernelSigaction {  // as rt_sigaction takes it; all zero: default action
  unsigned long words[4];
};

[[noreturn]] CPPRUN_IN_CHILD void give_up(ChildPlan& plan, ChildStep step) {
  plan.error = errno;
  plan.failed = step;
  for (;;) ::syscall(SYS_exit_group, 127);
}

CPPRUN_IN_CHILD bool place_stdio(const ChildPlan& plan) {
  for (int n = 0; n < 3; ++n) {
    const int from = plan.stdio[n];
    if (from != n && ::syscall(SYS_dup3, from, n, 0) < 0) return false;
    if (from == n && ::syscall(SYS_fcntl, n, F_SETFD, 0) < 0) return false;
  }
  return true;
}

struct KernelEntry {  // as getdents64 writes it
  uint64_t inode;
  int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[1];
};

// The slow way for kernels without close_range().
CPPRUN_IN_CHILD bool close_listed_at_exec() {
  const long folder = ::syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_CLOEXEC, 0);
  if (folder < 0) return false;
  alignas(KernelEntry) char buffer[1024];
  for (;;) {
    const long size = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (size <= 0) return size == 0;
    for (long at = 0; at < size;) {
      const KernelEntry& entry = *reinterpret_cast<const KernelEntry*>(buffer + at);
      at += entry.size;
      int fd = 0;
      for (const char* c = entry.name; *c >= '0' && *c <= '9'; ++c) fd = fd * 10 + (*c - '0');
      if (fd > 2) ::syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
    }
  }
}

// After exec only 0, 1 and 2 are open.
CPPRUN_IN_CHILD bool close_others_at_exec() {
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return true;
  // Linux 5.9 and 5.10 lack the flag. This process needs no other descriptor before exec.
  if (::syscall(SYS_close_range, 3U, ~0U, 0) == 0) return true;
  return close_listed_at_exec();
}

CPPRUN_IN_CHILD void clear_signals(const ChildPlan& plan) {
  KernelSigaction standard;
  for (unsigned long& word : standard.words) word = 0;
  for (size_t i = 0; i < plan.signal_count; ++i) {
    ::syscall(SYS_rt_sigaction, plan.signals[i], &standard, nullptr, sizeof(unsigned long));
  }
  standard.words[0] = 1;  // the kernel's SIG_IGN, in the place of the handler
  for (size_t i = 0; i < plan.ignored_count; ++i) {
    ::syscall(SYS_rt_sigaction, plan.ignored[i], &standard, nullptr, sizeof(unsigned long));
  }
  unsigned long empty = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &empty, nullptr, sizeof empty);
}

// False: the start was cancelled. Built-in atomics are no calls.
CPPRUN_IN_CHILD bool begin(const ChildPlan& plan) {
  if (plan.child == nullptr) return true;
  __atomic_exchange_n(plan.child, static_cast<int>(::syscall(SYS_getpid)), __ATOMIC_SEQ_CST);
  return __atomic_load_n(plan.is_cancelled, __ATOMIC_SEQ_CST) == 0;
}

}  // namespace

CPPRUN_IN_CHILD int child_main(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  plan.has_begun = true;
  if (!begin(plan)) {
    errno = ECANCELED;
    give_up(plan, ChildStep::Cancelled);
  }
  if (::syscall(SYS_setsid) < 0) give_up(plan, ChildStep::Session);
  if (plan.cgroup_procs >= 0 && ::syscall(SYS_write, plan.cgroup_procs, "0", 1UL) != 1) {
    give_up(plan, ChildStep::Cgroup);
  }
  if (::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) {
    give_up(plan, ChildStep::ParentDeath);
  }
  // The parent may have died before prctl() took effect.
  if (::syscall(SYS_getppid) != plan.parent) {
    errno = ESRCH;
    give_up(plan, ChildStep::ParentDeath);
  }
  if (plan.descriptors != nullptr) {  // lowers the soft limit only, which cannot fail
    ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, plan.descriptors, nullptr);
  }
  if (plan.cpus != nullptr &&
      ::syscall(SYS_sched_setaffinity, 0, sizeof *plan.cpus, plan.cpus) < 0) {
    give_up(plan, ChildStep::Cpus);
  }
  if (!place_stdio(plan)) give_up(plan, ChildStep::Stdio);
  if (!close_others_at_exec()) give_up(plan, ChildStep::Descriptors);
  clear_signals(plan);
  ::syscall(SYS_execve, plan.program, plan.argv, plan.environment);
  give_up(plan, ChildStep::Exec);
}

namespace {

constexpr int kCloneFlags = CLONE_VM | CLONE_VFORK | SIGCHLD;

// For emulators of system calls that refuse CLONE_PIDFD (qemu-user before 9.1). They may give the
// child a copy of the memory, so the parent does for it what begin() does in shared memory, and a
// failed exec is the worker's exit code 127.
int clone_child_then_open(ChildPlan& plan, char* stack_top, int& pidfd) {
  const int pid = ::clone(child_main, stack_top, kCloneFlags, &plan);
  if (pid < 0) return -errno;
  // Only the caller reaps this child, so the pid names no other process.
  pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  const int error = errno;
  if (plan.child != nullptr) __atomic_exchange_n(plan.child, pid, __ATOMIC_SEQ_CST);
  const bool is_cancelled =
      plan.child != nullptr && __atomic_load_n(plan.is_cancelled, __ATOMIC_SEQ_CST) != 0;
  if (pidfd >= 0 && !is_cancelled) return pid;
  ::kill(pid, SIGKILL);
  plan.error = pidfd < 0 ? error : ECANCELED;
  plan.failed = pidfd < 0 ? ChildStep::Handle : ChildStep::Cancelled;
  return pid;
}

}  // namespace

int clone_child(ChildPlan& plan, char* stack, size_t stack_size, int& pidfd) {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer takes clone() for a fork: in the child it stops following mutexes. The child
  // shares the memory, so it would stop for the parent's thread too. It does not see clone3().
  return clone_child_into(plan, stack, stack_size, -1, pidfd);
#endif
  char* const stack_top = stack + stack_size;
  const int pid = ::clone(child_main, stack_top, kCloneFlags | CLONE_PIDFD, &plan, &pidfd);
  if (pid >= 0) return pid;
  return errno == EINVAL ? clone_child_then_open(plan, stack_top, pidfd) : -errno;
}

#if defined(__x86_64__) || defined(__aarch64__)

int clone_child_into(ChildPlan& plan, char* stack, size_t stack_size, int cgroup, int& pidfd) {
  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD;
  args.exit_signal = SIGCHLD;
  args.pidfd = reinterpret_cast<__u64>(&pidfd);
  args.stack = reinterpret_cast<__u64>(stack);
  args.stack_size = stack_size;
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<__u64>(cgroup);
  }
  // glibc 2.36 has no clone3(). The child returns from the system call on its own, empty stack, so
  // it cannot return to any caller: it calls child_main directly.
#if defined(__x86_64__)
  long result = SYS_clone3;
  register ChildPlan* child_plan asm("r12") = &plan;
  register int (*child_code)(void*) asm("r13") = child_main;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %[plan], %%rdi\n\t"
      "call *%[code]\n\t"
      "ud2\n"
      "1:"
      : "+a"(result)
      : "D"(&args), "S"(sizeof args), [plan] "r"(child_plan), [code] "r"(child_code)
      : "rcx", "r11", "memory", "cc");
  return static_cast<int>(result);
#else
  register long x0 asm("x0") = reinterpret_cast<long>(&args);
  register long x1 asm("x1") = sizeof args;
  register long x8 asm("x8") = SYS_clone3;
  register ChildPlan* child_plan asm("x20") = &plan;
  register int (*child_code)(void*) asm("x21") = child_main;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x0, %[plan]\n\t"
      "blr %[code]\n\t"
      "brk #1\n"
      "1:"
      : "+r"(x0)
      : "r"(x1), "r"(x8), [plan] "r"(child_plan), [code] "r"(child_code)
      : "memory", "cc", "x30");
  return static_cast<int>(x0);
#endif
}

#else

int clone_child_into(ChildPlan&, char*, size_t, int, int&) { return -ENOSYS; }

#endif

}  // namespace cpprun
