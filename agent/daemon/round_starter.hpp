// RoundStarter: starts the workers of a round: their arguments, environment, streams and processes.
// Thread: the loop's. Owner: the daemon.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/daemon/round_files.hpp"
#include "agent/daemon/services/file_timer_server.hpp"
#include "agent/process/process_host.hpp"
#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class RoundStarter {
 public:
  // All arguments must outlive this object. `token`: of the agent's processes. `files`: with the
  // files of the round that start() begins.
  RoundStarter(const AgentConfig& config, const std::string& token, RoundFiles& files,
               ProcessHost& host)
      : config_(config), token_(token), files_(files), host_(host) {}

  // `store`: the agent's TCPStore. `timers`: nullptr without file timers. The host reports what
  // comes of it; an error: nothing was started.
  Status start(const control::RankAssignment& assignment, const Endpoint& store,
               FileTimerServer* timers);
  // All workers were spawned.
  void on_started(const control::RankAssignment& assignment);
  // No start is under way any more.
  void on_ended() { files_.release(); }

 private:
  // One per local rank, in order.
  std::vector<WorkerSpec> worker_specs(const control::RankAssignment& assignment,
                                       const Endpoint& store) const;
  void report_missing_files(const Status& made);
  void report_debugged_worker(const control::RankAssignment& assignment) const;

  const AgentConfig& config_;
  const std::string& token_;
  RoundFiles& files_;
  ProcessHost& host_;
  bool has_no_files_ = false;  // the newest attempt has no log folder
};

}  // namespace cpprun
