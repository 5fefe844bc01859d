// DashboardService: the data that the dashboard shows of jobs. It asks agents for progress only
// while a browser reads /events, and for a rank's log lines only while an authenticated browser
// reads them.
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
#include "rendezvous/server/peer_log.hpp"
#include "rendezvous/server/server.hpp"

namespace cpprun {

class DashboardService {
 public:
  // Calls the coordinator and carries out its effects.
  using RunCore = std::function<void(const std::function<void(Effects&)>&)>;

  // The arguments outlive the service.
  DashboardService(const Coordinator& core, const HistoryRecorder& job_history, RunCore run_core)
      : core_(core), job_history_(job_history), run_core_(std::move(run_core)) {}

  void fill(ServerHooks& hooks);
  // Serves log lines to browsers that prove this token; without this call, to none.
  void open_logs(std::string token, ChallengeVerifier::MakeNonce make_nonce) {
    authenticator_.open(std::move(token), std::move(make_nonce));
  }

 private:
  // Until when agents report by themselves.
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
  PeerLog peer_log_;
  Subscription watched_;
  std::map<JobRank, Subscription> tails_;  // log lines that a browser reads
};

}  // namespace cpprun
