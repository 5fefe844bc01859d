// Spawns one child process: in a session of its own, with a parent-death signal, and with no
// inherited descriptors but the given ones. Knows nothing of workers, ranks or output.
//
// The parent prepares everything; the child shares the parent's memory until its exec (vfork) and
// makes system calls only. A failed step comes back as an error value, never as an exit code.
// Thread: one, which must live as long as the children (parent-death signals belong to the thread
// that spawned).
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include "agent/process/spawn/start_ticket.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/thread/blocked_signals.hpp"
#include "common/time.hpp"

namespace cpprun {

struct SpawnPlan {
  std::string program;  // path for exec: see find_program()
  const std::vector<std::string>& argv;
  const std::vector<std::string>& environment;
  int in = 0;                           // becomes its stdin; 0: the agent's own
  int out = 1;                          // becomes its stdout; 1: the agent's own
  int err = 2;                          // becomes its stderr; 2: the agent's own
  int cgroup = -1;                      // cgroup folder to start in; -1: none
  const rlimit* descriptors = nullptr;  // RLIMIT_NOFILE; null: the agent's own
  std::vector<int> cpus{};              // that it may use; empty: the agent's own
  std::vector<int> ignored{};           // signals that are ignored unless the program handles them
  StartTicket* ticket = nullptr;        // by which another thread may cancel; null: none
};

struct Spawned {
  int pid = 0;  // 0: no process was started, a live worker gets new streams
  UniqueFd pidfd;
  // Time just before the clone: on busy CPUs the child runs long before the parent continues.
  Instant started_at;
};

// The path of argv[0] `name`: `name` itself if it has a slash, otherwise the first executable file
// of that name on PATH of `environment`. The error distinguishes a missing program from one that is
// not executable.
Result<std::string> find_program(const std::string& name,
                                 const std::vector<std::string>& environment);

// State that all spawns of a round share. While it lives, the calling thread blocks all signals, so
// that no handler runs in a child that still shares the memory.
class SpawnContext {
 public:
  SpawnContext();
  ~SpawnContext();
  SpawnContext(const SpawnContext&) = delete;

  // Returns after the child has called exec. Requires: descriptors 0, 1 and 2 are open.
  Result<Spawned> spawn(const SpawnPlan& plan);

 private:
  int run_child(struct ChildPlan& child, const SpawnPlan& plan, int& pidfd);
  int run_child_then_join(struct ChildPlan& child, int cgroup, int& pidfd);

  const BlockedSignals blocked_;
  void* stack_ = nullptr;
  bool cannot_start_in_cgroup_ = false;  // the kernel cannot start a child in the cgroup
  std::vector<int> signals_;             // those without the default action
};

}  // namespace cpprun
