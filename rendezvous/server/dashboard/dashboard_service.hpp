// DashboardService: what the dashboard is told of jobs, and what agents are asked for so that it
// can be told. Agents are asked only while somebody reads /events, and for a rank's lines only
// while somebody who may reads those.
//
// Thread: the server's loop. Owner: ControlService.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/observe/history_recorder.hpp"
#include "rendezvous/observe/step_history.hpp"
#include "rendezvous/server/dashboard/log_authenticator.hpp"
#include "rendezvous/server/server.hpp"

namespace cpprun {

class DashboardService {
 public:
  // Carries out what a call into the coordinator wishes.
  using RunCore = std::function<void(const std::function<void(Effects&)>&)>;

  // All outlive it.
  DashboardService(const Coordinator& core, const HistoryRecorder& job_history, RunCore run_core)
      : core_(core), job_history_(job_history), run_core_(std::move(run_core)) {}

  void fill(ServerHooks& hooks);
  // Log lines are shown to who knows this token; without this call, to nobody.
  void open_logs(std::string token, ChallengeVerifier::MakeNonce make_nonce) {
    authenticator_.open(std::move(token), std::move(make_nonce));
  }

 private:
  // Until when agents tell of it by themselves.
  struct Subscription {
    Instant until;
    bool must_be_renewed(Instant now) const;
  };

  std::vector<Topic> topics(const std::set<std::string>& private_ones);
  void unwatched();
  void watch(Duration lasts);
  void read_lines(const JobRank& wanted);
  HttpResponse log_page(std::string_view path, std::string_view query, const std::string& peer);

  const Coordinator& core_;
  const HistoryRecorder& job_history_;
  RunCore run_core_;
  StepHistory history_;
  LogAuthenticator authenticator_;
  Subscription watched_;
  std::map<JobRank, Subscription> tails_;  // that somebody reads
};

}  // namespace cpprun
