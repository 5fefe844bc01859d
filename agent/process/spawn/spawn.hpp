// Starting one child the way a supervisor must: in a session of its own, tied to our life, with
// nothing of ours inherited but what it is given. Knows nothing of workers, ranks or output.
//
// Everything is prepared in the parent; the child, which shares our memory until its exec (vfork),
// makes system calls only. A failed step comes back as a value, never as a strange exit code.
// Thread: one, and it must live as long as the children (parent-death signals belong to the thread
// that spawned).
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

struct SpawnPlan {
  std::string program;  // path as exec takes it: see find_program()
  const std::vector<std::string>& argv;
  const std::vector<std::string>& environment;
  int out = 1;                          // becomes its stdout; 1 = ours is inherited
  int err = 2;                          // becomes its stderr; 2 = ours is inherited
  int cgroup = -1;                      // folder to be born in; -1: none
  const rlimit* descriptors = nullptr;  // RLIMIT_NOFILE; null: ours
  std::vector<int> cpus{};              // on which it may run; empty: as we
};

struct Spawned {
  int pid = 0;
  UniqueFd pidfd;
  // Just before it was made: where CPUs are busy it has done much before we run again.
  Instant started_at;
};

// Path of argv[0] `name`: itself where it has a slash, else the first executable file of that name
// on PATH of `environment`. The error says whether nothing was found or something that may not be
// executed.
Result<std::string> find_program(const std::string& name,
                                 const std::vector<std::string>& environment);

// What all spawns of a round share. While it lives, all signals are blocked in the calling thread,
// so that no handler can run in a child that still shares our memory.
class SpawnContext {
 public:
  SpawnContext();
  ~SpawnContext();
  SpawnContext(const SpawnContext&) = delete;

  // The child has called exec when this returns. Requires: descriptors 0, 1 and 2 are open.
  Result<Spawned> spawn(const SpawnPlan& plan);

 private:
  int run_child(struct ChildPlan& child, int cgroup, int& pidfd);
  int run_child_beside(struct ChildPlan& child, int cgroup, int& pidfd);

  void* stack_ = nullptr;
  bool is_into_refused_ = false;  // no child can be born in the cgroup
  std::vector<int> signals_;      // those with another than the default action
  alignas(8) unsigned char old_mask_[128]{};
};

}  // namespace cpprun
