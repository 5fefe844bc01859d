// ForkBatch: the workers of a round, forked from the preload process all at once and then admitted
// one after the other. A worker that is not admitted ends when this object does.
//
// One request of the agent makes the preload process fork an intermediate process, which forks the
// workers and exits, so that they become children of the agent, a subreaper. Each worker has a
// gate, a socket pair to the agent: it sends "P<pid>" once the agent is its parent, waits for "G"
// with four descriptors (specification, stdin, stdout, stderr), and sends "K" when its setup is
// complete, or "E<reason>". The specification is a memfd: argc, the arguments, the CPUs ("0,1"),
// the signals to ignore, the environment, each field with a zero byte behind it.
//
// Thread: the spawn thread's. Owner: the starts of the round.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "agent/process/preload/preload_process.hpp"
#include "agent/process/spawn/spawn.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

class ForkBatch {
 public:
  // `workers`: how many calls of fork_worker() are to come; more are possible.
  ForkBatch(std::shared_ptr<PreloadProcess> process, size_t workers);

  // Returns when the worker's setup is complete; waits at most limits::kPreloadForkTimeout. A
  // worker that is not complete by then never begins its program. On an error the worker must be
  // spawned. ErrorKind::Timeout: this process can fork no others either.
  Result<Spawned> fork_worker(const SpawnPlan& plan);

 private:
  Status request_workers();
  Result<Spawned> take_worker(const SpawnPlan& plan, Instant until);
  Result<Spawned> admit(const SpawnPlan& plan, int gate, Spawned worker, Instant until);
  Result<std::string> await(int gate, const StartTicket& ticket, Instant until) const;

  const std::shared_ptr<PreloadProcess> process_;
  size_t left_;                  // workers that are not requested yet
  std::deque<UniqueFd> gates_;   // of workers that are forked and not admitted yet
  std::optional<Error> broken_;  // the process does not answer
};

}  // namespace cpprun
