// CoordinatorChecks: what one coordinator was told of one job, kept beside the core and not by it,
// and what it must make of that: a job goes on from what its agents remember (R13), its standby
// stays standby (R14), who leaves forms nothing (R15), nobody else goes on with what a standby may
// lead (R17), rounds begin with the newest snapshot that is to be had, faults of a plan strike no
// more often than they may.
//
// One per coordinator and run id. Not for what agents do, nor for what several coordinators do
// together: that is Checks.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/coordinator/job.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "tests/support/sim/checks.hpp"

namespace cpprun::sim {

class CoordinatorChecks {
 public:
  // `first_term`: of the first job that this coordinator leads; `host`: the agent in its process;
  // `is_standby`: it has taken that job over.
  CoordinatorChecks(Checks& checks, Term first_term, std::optional<Incarnation> host,
                    bool is_standby)
      : checks_(&checks), first_term_(first_term), host_(host), is_standby_(is_standby) {}

  // Before the core hears it; `job` as it is then, nullptr: there is none.
  void on_message(const Job* job, const control::Hello& from, const control::AgentMessage& message);
  // Its connection has ended by FIN: it is dead, or has left (R4).
  void on_fin(Incarnation from) { gone_.insert(from); }
  // `term`: of the job, by now.
  void on_sent(Term term, Incarnation to, const control::CoordinatorMessage& message);
  // All that one call of the core sent has been told.
  void after_call(const Job& job);

 private:
  struct Member {
    int64_t connection = 0;  // the newest: older ones count for nothing while it is known (R4)
    bool has_dir = false;
    std::string address;
    std::vector<control::SnapshotName> snapshots;
    std::vector<std::pair<int64_t, int64_t>>
        questions;  // faults, and how often each may be injected
  };

  // `is_memory`: the coordinator has no round yet, so that it goes on from this.
  void on_register(bool is_memory, Incarnation from, const control::Register& message);
  void start_over();
  void remember(Incarnation from, const control::Register& message);
  void on_fault_permit(Member& member, const control::FaultPermit& message);
  void check_recovered_round(const control::RankAssignment& assignment);
  void check_continuation();
  void check_standby(const Job& job);
  const control::RankAssignment* round_before() const;
  void check_snapshots();
  bool has(const Member& member, const control::SnapshotName& snapshot) const;
  std::optional<control::SnapshotName> newest_of_all() const;
  bool is_served(const control::ResumePoint& resume) const;

  Checks* checks_;
  Term first_term_;
  std::optional<Incarnation> host_;
  bool is_standby_;
  bool has_begun_ = false;  // a job
  std::map<Incarnation, Member> members_;

  // What agents brought while the coordinator had no round.
  std::optional<control::RankAssignment> newest_;
  bool is_failure_charged_ = false;  // for newest_
  bool is_hang_charged_ = false;
  bool has_evidence_ = false;   // whoever led newest_ is dead, by whom it is to be believed
  std::set<Incarnation> came_;  // while the coordinator had no round
  bool has_continued_ = false;  // it has welcomed somebody since it knows of newest_

  std::map<Incarnation, control::RankAssignment> formed_in_call_;  // told in the call under way
  std::map<Incarnation, control::RankAssignment> formed_;          // before
  std::set<Incarnation> gone_;                                     // on evidence
  std::set<Incarnation> leaving_;                                  // asked to stop
  std::set<std::string> reported_unusable_;  // snapshots that somebody could not use ...
  std::set<std::string> unusable_;           // ... and of which the coordinator must know it
  std::map<int64_t, int64_t> fault_quota_;   // by fault, as far as anybody has said
};

}  // namespace cpprun::sim
