// TorchelasticEvents: what --event-log-handler=console prints, in torchrun's own form, so that what
// reads torchrun's stderr reads ours: JSON objects named torchelastic.worker.status.<STATE>. Our
// own events, which say more, are event_recorder.hpp's.
//
// RENDEZVOUS and ASSIGN_WORKER_RANKS per round, START per worker; at the end SUCCEEDED, FAILED or
// TERMINATED per worker of the last round, and SUCCEEDED or FAILED of the agent. As under torchrun
// the agent has succeeded where it could tell how its workers ended. Thread: the loop's.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "common/failure/worker_exit.hpp"

namespace cpprun {

class TorchelasticEvents {
 public:
  // `config` outlives this. Says nothing unless the handler is "console".
  TorchelasticEvents(const AgentConfig& config, std::string node);

  void waits_for_round(Instant now);  // from here on a round is waited for
  void round_formed(Instant now, const control::RankAssignment& assignment);
  void worker_started(LocalRank local_rank, int pid);
  void round_started();  // all of them
  void worker_exited(const WorkerExit& end);
  void finished(Instant now, const agent::Finish& finish);

 private:
  struct Worker {
    LocalRank local_rank;
    int pid = 0;
  };
  struct Line;  // what differs from record to record

  void print(const Line& line) const;
  void print_end(const Worker& worker, const WorkerExit* end, bool has_failed) const;

  const AgentConfig& config_;
  const std::string node_;
  const bool is_on_;
  control::RankAssignment assignment_;
  bool has_assignment_ = false;
  int64_t restarts_ = 0;
  Instant began_at_;
  Instant waits_since_;
  int64_t seconds_ = 0;           // of the whole run; torchrun counts them at its end only
  std::vector<Worker> workers_;   // of the newest round
  std::vector<WorkerExit> ends_;  // of them
};

}  // namespace cpprun
