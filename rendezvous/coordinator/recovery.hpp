// Recovery: what a coordinator learns, from agents or from etcd, about a job that another
// coordinator has led, and when it may continue that job (docs/protocol.md, R13, R16 to R18).
//
// Each agent brings the newest rank assignment that it was sent. Until the recovery is over the
// coordinator forms no round and issues no worker lease. It is over when a node lease has passed,
// because every worker lease of the former coordinator has ended by then. It is over sooner when
// all members of the newest known round are here and one of them still holds a worker lease for
// that round: then no newer round exists.
//
// A core: no I/O, no clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/node.hpp"
#include "rendezvous/coordinator/rounds/round.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun {

class Recovery {
 public:
  // What the former coordinator of the job was to us.
  enum class Kind {
    Endpoint,   // it led at the same endpoint, or elsewhere
    AsStandby,  // this coordinator is its standby: the former one is dead
    FromState,  // this coordinator was elected, and has read the persisted state (R18)
  };

  Recovery(Kind kind, Duration lease) : kind_(kind), lease_(lease) {}

  // The first agent registers: from here on the deadlines count. Later calls change nothing.
  void start(Instant now);
  // An agent, or the persisted state, brings a rank assignment. True: it is newer than all before,
  // so what followed from an older one is void.
  bool restore(const control::RankAssignment& assignment);
  // An agent has registered, perhaps with the outcome of the job. True: it is a member of newest().
  bool on_registered(Instant now, const Node& node);
  // The newest round can't continue as it is.
  void require_stop() { must_stop_ = true; }
  // A member was lost after it had registered.
  void note_loss() { has_lost_member_ = true; }

  // Whether the recovery is over by now. `round`: the members of newest() that are here.
  bool is_over(Instant now, const Round& round);
  Instant next_deadline() const;

  // Of all rounds that agents have reported; round 0: none.
  const control::RankAssignment& newest() const { return newest_; }
  // The outcome, reported by a member of the job and confirmed by another: both have shown the key
  // that only members know (R10). nullptr: none.
  const control::JobResult* result() const;
  // An outcome is reported that no other node confirms. Its reporter may be no member.
  bool is_result_unconfirmed() const;
  bool must_stop() const { return must_stop_; }
  // Members of newest() are missing, and no drain or admin command has ended that round: a member
  // that has left after one is not lost.
  bool has_loss() const {
    return !is_stop_requested_ && (has_lost_member_ || seen_count() < newest_.group_size);
  }
  // Members of newest() that have registered.
  int64_t seen_count() const { return static_cast<int64_t>(seen_.size()); }

 private:
  // What a node has shown when it registered.
  struct Report {
    std::string job_key;  // of its rank assignment; empty: it reported none
    std::optional<control::JobResult> result;
  };

  bool may_lead() const;
  bool is_claim(const Report& report) const {
    return report.result && report.job_key == newest_.job_key;
  }
  void on_leader_death_known(Instant now);

  const Kind kind_;
  const Duration lease_;
  Instant ends_at_ = Instant::never();       // a node that has not registered by then is lost
  Instant host_gone_at_ = Instant::never();  // the node in the former coordinator's process is dead
  bool is_host_gone_ = false;                // that time has come
  bool has_evidence_ = false;                // the coordinator that formed newest_ is dead
  bool is_proven_ = false;                   // no round is newer than newest_
  bool must_stop_ = false;
  bool has_lost_member_ = false;
  bool is_stop_requested_ = false;  // a member reports it of newest_
  std::set<Incarnation> registered_;
  std::set<int64_t> seen_;  // group ranks of newest_
  control::RankAssignment newest_;
  std::map<Incarnation, Report> reports_;
};

// The rank assignment that the persisted state of a job stands for, with the settings of its
// agents.
control::RankAssignment assignment_of(const control::PersistedJobState& state,
                                      const control::JobSpec& job_spec);

// A term greater than `seen`, for a coordinator whose own term, taken from a clock that went back,
// is not.
Term next_term_after(Term seen, Term own);

}  // namespace cpprun
