// TorchelasticEvents: prints torchrun's own event records for --event-log-handler=console, so that
// tools that parse torchrun's stderr work with cpprun: JSON objects named
// torchelastic.worker.status.<STATE>. cpprun's own, richer events are in event_recorder.hpp.
//
// RENDEZVOUS and ASSIGN_WORKER_RANKS per round, START per worker; at the end SUCCEEDED, FAILED or
// TERMINATED per worker of the last round, and SUCCEEDED or FAILED for the agent. As in torchrun
// the agent has SUCCEEDED if it knows how its workers ended, even if they failed. Thread: the
// loop's.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "common/failure/worker_exit.hpp"

namespace cpprun {

class TorchelasticEvents {
 public:
  // `config` must outlive this object. Prints nothing unless the handler is "console".
  TorchelasticEvents(const AgentConfig& config, std::string node);

  void waits_for_round(Instant now);  // the agent begins to wait for a round
  void round_formed(Instant now, const control::RankAssignment& assignment);
  void worker_started(LocalRank local_rank, int pid);
  void round_started();  // all workers were started
  void worker_exited(const WorkerExit& end);
  void finished(Instant now, const agent::Finish& finish);

 private:
  struct Worker {
    LocalRank local_rank;
    int pid = 0;
  };
  struct Record;  // the fields that differ between records

  void print(const Record& record) const;
  void print_end(const Worker& worker, const WorkerExit* end, bool has_failed) const;

  const AgentConfig& config_;
  const std::string node_;
  const bool is_on_;
  control::RankAssignment assignment_;
  bool has_assignment_ = false;
  int64_t restarts_ = 0;
  Instant began_at_;
  Instant waits_since_;
  int64_t seconds_ = 0;           // run time; 0 before the end, as in torchrun
  std::vector<Worker> workers_;   // of the newest round
  std::vector<WorkerExit> ends_;  // of workers_
};

}  // namespace cpprun
