// RedirectChecks: what one coordinator must make of who says that a job is led from elsewhere
// (R17): it takes in nobody then, and gives away nothing that it leads itself.
//
// Beside the core, not of it. Jobs whose arbiter is etcd have nothing of the kind.
#pragma once

#include <map>
#include <set>
#include <string>

#include "rendezvous/coordinator/job.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "tests/support/sim/checks.hpp"
#include "tests/support/sim/network.hpp"

namespace cpprun::sim {

class RedirectChecks {
 public:
  explicit RedirectChecks(Checks& checks) : checks_(checks) {}

  // Before the core hears it; `job` as it is then, nullptr: there is none.
  void on_message(ConnectionId connection, const control::Hello& from, const Job* job,
                  const control::AgentMessage& message);
  // All that the message brought about has been said.
  void after_message() { keeps_its_job_ = false; }
  void on_sent(ConnectionId connection, Incarnation to, const control::CoordinatorMessage& message);
  void on_ended(ConnectionId connection);

 private:
  Checks& checks_;
  std::map<std::string, ConnectionId> announced_by_;  // by run id: the newest that said it leads
  std::set<ConnectionId> leader_announcers_;
  std::set<ConnectionId> redirected_;  // who registered when the job was known to be led elsewhere
  bool keeps_its_job_ = false;         // in the call under way
};

}  // namespace cpprun::sim
