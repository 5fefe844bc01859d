// ElectionChecks: what R18 asks of who leads by an election, judged with full sight of etcd: no
// grant outlasts the lease, the lease is given back only when no worker lives, nothing is told
// before it is written, and what is written goes on from what was read.
//
// Beside the cores, not of them: it decides nothing, and draws nothing.
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

  // etcd keeps them from now on.
  void on_job_state(const std::string& job_state_key,
                    const Result<control::PersistedJobState>& read);
  // The leader's key is gone before its lease had ended.
  void on_given_back();
  // `who` may issue worker leases until then; its lease ends no sooner than `lease_ends`, or is
  // gone if that is now. All in true time.
  void on_leader_lease(const control::Leader& who, Instant now, Instant until, Instant lease_ends);
  // The coordinator of a job in this epoch says so to an agent.
  void on_told(const std::string& run_id, Term by, const control::CoordinatorMessage& message);

 private:
  struct Job {
    std::map<Term, control::PersistedJobState> newest;  // by whose they are
    std::set<Term> decided;                             // epochs in which an outcome was written
    std::set<Term> left;                                // in which agents were asked to leave
  };

  Checks& checks_;
  std::map<std::string, Job> jobs_;  // by the key of their facts
};

}  // namespace cpprun::sim
