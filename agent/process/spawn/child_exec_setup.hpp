// The steps of a new child between clone and exec, and the calls that create it.
//
// Internal to spawn.cpp. The child shares the parent's memory, so its code makes system calls only,
// and is not instrumented by sanitizers (their bookkeeping would change the parent's).
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace cpprun {

// In the order of execution, but for Handle: the parent opens the child's.
enum class ChildStep : int {
  None,
  Handle,
  Cancelled,
  Session,
  Cgroup,
  ParentDeath,
  Cpus,
  Stdio,
  Descriptors,
  Exec
};

struct ChildPlan {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  int stdio[3] = {0, 1, 2};  // the descriptors that become 0, 1, 2
  int cgroup_procs = -1;     // the child writes itself into it; -1: the child starts in its cgroup
  pid_t parent = 0;
  const rlimit* descriptors = nullptr;  // null: the parent's
  const cpu_set_t* cpus = nullptr;      // null: the parent's
  const int* signals = nullptr;         // reset to their default action
  size_t signal_count = 0;
  const int* ignored = nullptr;  // signals to ignore
  size_t ignored_count = 0;
  int* child = nullptr;               // gets the child's pid (start_ticket.hpp); null: unused
  const int* is_cancelled = nullptr;  // read after that
  volatile ChildStep failed = ChildStep::None;  // written by the child
  volatile int error = 0;
  volatile bool has_begun = false;  // the child's first write
};

// Runs the steps in the child. Never returns.
int child_main(void* plan);

// Creates the child; the parent waits until the child has called exec or ended. Returns its pid, or
// -errno.
int clone_child(ChildPlan& plan, char* stack, size_t stack_size, int& pidfd);

// Like clone_child(), but the child starts in the cgroup whose folder is open as `cgroup`; -1: in
// the parent's. Joining a cgroup later through cgroup.procs costs the first writer 13 to 22 ms (an
// RCU grace period), this 6 us. -ENOSYS: the kernel lacks clone3().
int clone_child_into(ChildPlan& plan, char* stack, size_t stack_size, int cgroup, int& pidfd);

}  // namespace cpprun
