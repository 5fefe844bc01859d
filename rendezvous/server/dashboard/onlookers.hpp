// Onlookers: what the dashboard is told of jobs, and what agents are asked for so that it can be
// told. Agents are asked only while somebody reads /events, and for a rank's lines only while
// somebody who may reads those.
//
// Thread: the server's loop. Owner: ControlService.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/observe/chronicle.hpp"
#include "rendezvous/observe/step_history.hpp"
#include "rendezvous/server/dashboard/log_gate.hpp"
#include "rendezvous/server/server.hpp"

namespace cpprun {

class Onlookers {
 public:
  // Carries out what a call into the coordinator wishes.
  using TellCore = std::function<void(const std::function<void(Effects&)>&)>;

  // All outlive it.
  Onlookers(const Coordinator& core, const Chronicle& chronicle, TellCore tell_core)
      : core_(core), chronicle_(chronicle), tell_core_(std::move(tell_core)) {}

  void fill(ServerHooks& hooks);
  // Log lines are shown to who knows this token; without this call, to nobody.
  void open_logs(std::string token, TokenGuard::MakeNonce make_nonce) {
    gate_.open(std::move(token), std::move(make_nonce));
  }

 private:
  // Until when agents tell of it by themselves.
  struct Asked {
    Instant until;
    bool must_be_renewed(Instant now) const;
  };

  std::vector<Topic> topics(const std::set<std::string>& private_ones);
  void unwatched();
  void watch(Duration lasts);
  void read_lines(const RankOfJob& wanted);
  HttpAnswer log_page(std::string_view path, std::string_view query, const std::string& peer);

  const Coordinator& core_;
  const Chronicle& chronicle_;
  TellCore tell_core_;
  StepHistory history_;
  LogGate gate_;
  Asked watched_;
  std::map<RankOfJob, Asked> tails_;  // that somebody reads
};

}  // namespace cpprun
