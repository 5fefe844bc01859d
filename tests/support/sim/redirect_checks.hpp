// RedirectChecks: checks one coordinator after an announcement that another coordinator leads a job
// (R17): it then accepts no agent of that job, and it never gives away a job that it leads itself.
//
// Observes the core only. Jobs whose arbiter is etcd have no announcements.
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

  // Before the core receives it; `job` as it is then, nullptr: there is none.
  void on_message(ConnectionId connection, const control::Hello& from, const Job* job,
                  const control::AgentMessage& message);
  // The core has sent all effects of the message.
  void after_message() { keeps_its_job_ = false; }
  void on_sent(ConnectionId connection, Incarnation to, const control::CoordinatorMessage& message);
  void on_ended(ConnectionId connection);
  // The agent on this connection registered when the job was led elsewhere and not here, so it must
  // go there, and becomes no node of a job here.
  bool is_redirected(ConnectionId connection) const { return redirected_.contains(connection); }

 private:
  Checks& checks_;
  std::map<std::string, ConnectionId>
      announced_by_;  // by run id: the newest connection that announced a leader
  std::set<ConnectionId> leader_announcers_;
  std::set<ConnectionId> redirected_;  // agents that registered when another leader was known
  bool keeps_its_job_ = false;         // in the current call
};

}  // namespace cpprun::sim
