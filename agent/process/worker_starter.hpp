// WorkerStarter: makes the starts of workers for the spawn thread: it finds the program, opens the
// worker's streams and spawns or forks the worker, all of which may wait for a file system.
//
// Thread: the loop's; the starts that it makes run on the spawn thread. Owner: the host.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/spawn/spawn_thread.hpp"
#include "agent/process/streams/stream_fds.hpp"
#include "agent/process/worker_spec.hpp"
#include "common/ids.hpp"
#include "common/worker_starts.hpp"

namespace cpprun {

// A worker whose start is under way, shared with its start.
struct StartingWorker {
  WorkerSpec spec;
  // The agent's ends of its streams. The loop reads it after the outcome of the start.
  std::vector<OutputStream> streams{};
  // This live worker of the round before becomes it, instead of a new process; 0: none.
  int survivor = 0;
  // What a survivor gets as stdout and stderr. Valid with the outcome.
  UniqueFd out{};
  UniqueFd err{};
  // Unset: it was forked from a preload process. Valid with the outcome.
  std::optional<SpawnReason> spawn_reason = SpawnReason::NoPreload;
};

// Forks a worker from a process that has imported its modules, or returns why it must be spawned.
// Called on the spawn thread.
struct ForkAttempt {
  std::optional<Spawned> worker{};
  SpawnReason reason = SpawnReason::NoPreload;  // without a worker
};
using WorkerFork = std::function<ForkAttempt(const SpawnPlan&)>;

// For the user: the start of this program has not returned for limits::kSpawnTimeout.
std::string slow_start_text(LocalRank worker, const std::string& program);

class WorkerStarter {
 public:
  // `token`: of the agent's processes.
  explicit WorkerStarter(std::string token);

  // `workers`: of the whole round. `cgroup`: folder to start in; -1: none.
  std::vector<SpawnThread::Start> make(const std::vector<std::shared_ptr<StartingWorker>>& workers,
                                       const LogFiles& files, int cgroup,
                                       const WorkerFork& fork) const;

 private:
  class ProgramSearch;

  const std::string token_;
  rlimit descriptors_{};  // the limit that workers get: the one before the launcher raised it
  const std::shared_ptr<ProgramSearch> search_;  // the spawn thread's
};

}  // namespace cpprun
