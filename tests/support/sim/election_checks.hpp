// ElectionChecks: checks rule R18 with complete knowledge of etcd: no worker lease outlasts the
// leader lease, the lease is revoked only when no worker lives, nothing is sent before it is
// persisted, and persisted state continues from what was read.
//
// Observes the cores only: it decides nothing, and draws no random number.
#pragma once

#include <map>
#include <set>
#include <string>

#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/election_values.hpp"
#include "tests/support/sim/checks.hpp"

namespace cpprun::sim {

class ElectionChecks {
 public:
  explicit ElectionChecks(Checks& checks) : checks_(checks) {}

  // etcd stores them from now on.
  void on_job_state(const std::string& job_state_key,
                    const Result<control::PersistedJobState>& read);
  // The leader's key is gone before its lease has ended.
  void on_given_back();
  // `leader` may issue worker leases until then; its leader lease ends no sooner than `lease_ends`,
  // or is revoked if that is now. All in true time.
  void on_leader_lease(const control::Leader& leader, Instant now, Instant until,
                       Instant lease_ends);
  // The coordinator of a job in this term sends the outcome to an agent.
  void on_outcome(const std::string& run_id, Term by, const control::CoordinatorMessage& message);

 private:
  struct Job {
    std::map<Term, control::PersistedJobState> newest;  // by the issuing leader
    std::set<Term> decided;                             // terms in which an outcome was persisted
    std::set<Term> left;                                // terms in which agents were asked to leave
  };

  Checks& checks_;
  std::map<std::string, Job> jobs_;  // by the key of the persisted state
};

}  // namespace cpprun::sim
