// What a new child does between its birth and exec, as one list; and the call that makes such a
// child.
//
// Internal to spawn.cpp. The child shares our memory, so its code calls nothing but the kernel and
// is kept out of the sanitizers' sight (their bookkeeping would be ours).
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>

namespace cpprun {

// In the order in which they are taken.
enum class ChildStep : int { None, Session, Cgroup, ParentDeath, Cpus, Stdio, Exec };

struct ChildPlan {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  int stdio[3] = {0, 1, 2};  // what becomes 0, 1, 2
  int cgroup_procs = -1;     // written to when the child was not born in its cgroup
  pid_t parent = 0;
  const rlimit* descriptors = nullptr;  // null: as many as we may have
  const cpu_set_t* cpus = nullptr;      // null: as ours
  const int* signals = nullptr;         // to be set to their default action
  size_t signal_count = 0;
  volatile ChildStep failed = ChildStep::None;  // written by the child
  volatile int error = 0;
  volatile bool has_begun = false;  // written by the child, first of all
};

// Runs the steps; returns only if the kernel itself has gone mad.
int child_main(void* plan);

// The parent is held until the child has called exec or ended. Returns its pid, or -errno.
int clone_child(ChildPlan& plan, char* stack_top, int& pidfd);

// The same, born in the cgroup whose folder is open as `cgroup`: joining it later by cgroup.procs
// costs the first writer 13 to 22 ms (an RCU grace period), this 6 us. -ENOSYS where there is no
// such call.
int clone_child_into(ChildPlan& plan, char* stack, size_t stack_size, int cgroup, int& pidfd);

}  // namespace cpprun
