// CoordinatorChecks: records the messages of one coordinator about one job, outside the core, and
// checks its decisions: a job continues from its agents' reports (R13), its standby stays standby
// (R14), a leaving host forms nothing (R15), no other coordinator continues a job that a standby
// may lead (R17), rounds begin with the newest available snapshot, faults of a plan happen at most
// as often as permitted.
//
// One per coordinator and run id. Checks covers agents, and several coordinators together.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/job.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "tests/support/sim/checks.hpp"

namespace cpprun::sim {

class CoordinatorChecks {
 public:
  // `first_term`: of the first job that this coordinator leads; `host`: the agent in its process;
  // `is_standby`: this coordinator was that job's standby, and knows its key `job_key` (R10).
  CoordinatorChecks(Checks& checks, Term first_term, std::optional<Incarnation> host,
                    bool is_standby, std::string job_key)
      : checks_(&checks),
        first_term_(first_term),
        host_(host),
        is_standby_(is_standby),
        job_key_(std::move(job_key)) {}

  // Before the core receives it; `job` as it is then, nullptr: there is none. Not for a node that
  // the coordinator refuses: the core ignores its messages.
  void on_message(const Job* job, const control::Hello& from, const control::AgentMessage& message);
  // Its connection has ended by FIN: it is dead, or has left (R4).
  void on_fin(Incarnation from) { gone_.insert(from); }
  // `term`: the job's term now.
  void on_sent(Term term, Incarnation to, const control::CoordinatorMessage& message);
  // After on_sent() of all that one call of the core has sent.
  void after_call(const Job& job);

 private:
  struct Member {
    int64_t connection = 0;  // the newest: the coordinator ignores older ones (R4)
    bool has_dir = false;
    std::string address;
    std::vector<control::SnapshotName> snapshots;
    std::vector<std::pair<int64_t, int64_t>>
        questions;  // faults, and how often each may be injected
  };

  // `is_memory`: the coordinator has no round yet, so it may continue this one.
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
  std::string job_key_;     // empty: unknown
  bool has_begun_ = false;  // a job exists
  std::map<Incarnation, Member> members_;

  // Reports of agents while the coordinator had no round.
  std::optional<control::RankAssignment> newest_;
  bool is_failure_charged_ = false;  // for newest_
  bool is_hang_charged_ = false;
  bool is_loss_charged_ = false;
  bool has_evidence_ =
      false;  // a reliable witness reported the death of the coordinator of newest_
  std::set<Incarnation> came_;  // while the coordinator had no round
  bool has_continued_ = false;  // it has answered a registration since it knows newest_

  std::map<Incarnation, control::RankAssignment> formed_in_call_;  // sent in the current call
  std::map<Incarnation, control::RankAssignment> formed_;          // sent before
  std::set<Incarnation> gone_;                                     // dead or left, with evidence
  std::set<Incarnation> leaving_;                                  // asked to stop
  std::set<std::string> reported_unusable_;  // snapshots that some node reported as unusable ...
  std::set<std::string> unusable_;           // ... and whose reports the coordinator must know
  std::map<int64_t, int64_t> fault_quota_;   // by fault, the largest reported count
};

}  // namespace cpprun::sim
