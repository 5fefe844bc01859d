// Checks: the safety properties of every run, checked from outside with true time and complete
// knowledge. The cores do not use it. Each violation is kept as a sentence.
//
// Names S1 to S5 are those of the properties in docs/simulation.md, R1 to R11 the rules of
// docs/protocol.md.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/effects.hpp"
#include "common/ids.hpp"
#include "rendezvous/coordinator/membership.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::sim {

// A round of one job under one coordinator.
struct RoundName {
  Term term;
  RoundNumber round;
  auto operator<=>(const RoundName&) const = default;
};

// No round was formed and no worker lease issued yet: the coordinator knows only the agents'
// reports.
bool has_no_memory(const Membership& job);

class Checks {
 public:
  const std::vector<std::string>& broken() const { return broken_; }
  void require(bool holds, const std::string& what) {
    if (!holds && broken_.size() < kKept) broken_.push_back(what);
  }

  // ---- the true state of workers
  void on_workers_live(const RoundName& round, int64_t count);
  void on_workers_gone(const RoundName& round, int64_t count);
  // A worker failed by itself, without a stop request.
  void on_true_failure(const RoundName& round) { failing_rounds_.insert(round); }
  // The agent learned of such an exit while its round ran, and must report it.
  void on_reported_failure(Incarnation node, const RoundName& round) {
    unreported_failure_.emplace(node, round.round);
  }
  int64_t live_workers_of(Term term, RoundNumber round) const;  // in any term of the job
  int64_t live_workers() const { return live_in_all_; }

  // ---- an agent
  void on_start(Incarnation node, const control::RankAssignment& assignment, Term welcomed);
  void on_finish(Term term, bool has_workers, const agent::Finish& finish);

  // It becomes the job's coordinator; it last registered with a coordinator of this term.
  void on_promotion(Incarnation node, Term welcomed);

  // ---- a coordinator, and everything sent by one call of it
  void on_sent(const Membership* job, Incarnation to, const control::CoordinatorMessage& message);
  void after_call(const Membership* job);
  // A coordinator continues a round that another one formed: one job in two terms.
  void on_continued(const Membership& by, Term formed_in);
  // An agent's message, when the coordinator receives it.
  void on_heard(Term term, Incarnation from, const control::AgentMessage& message);

  int64_t rounds_formed() const { return rounds_formed_; }

 private:
  static constexpr size_t kKept = 20;

  struct Round {
    control::RankAssignment first;
    std::map<Incarnation, control::RankAssignment> assignments;
    bool was_stopped_by_failure = false;
  };
  struct Job {
    RoundName newest;
    int64_t budget_used = 0;
    std::map<RoundName, Round> rounds;
    std::optional<control::JobResult> decided;
    Term decided_in;
    std::set<Incarnation> told;  // nodes that received the outcome
    bool is_success_told = false;
    bool is_failure_told = false;
    std::set<Incarnation> must_acknowledge;  // before the first bye
    Term unusable_in;  // in which the coordinator learned that a node of the newest round is
                       // unusable
  };

  // The first term of the job that continues in this one.
  Term root(Term term) const;
  Job& job_of(Term term) { return jobs_[root(term)]; }
  bool are_one_job(const RoundName& a, const RoundName& b) const {
    return root(a.term) == root(b.term);
  }
  void on_assignment(Job& job, Incarnation to, const control::RankAssignment& assignment);
  void on_new_round(Job& job, const control::RankAssignment& assignment);
  void on_job_result(Job& job, const Membership& membership, Incarnation to,
                     const control::JobResult& decided);
  void on_bye(Job& job, const Membership& membership, Incarnation to);
  void check_unusable(const Membership& membership);
  void check_ranks(const Round& round, const std::string& where);

  std::map<Term, Term> continued_;  // a term, and the earlier term that it continues
  std::set<Term> started_over_;     // after an outcome that no remaining node knows
  std::map<Term, Job> jobs_;        // by the job's first term
  std::map<RoundName, int64_t> live_;
  int64_t live_in_all_ = 0;
  std::set<RoundName> failing_rounds_;        // of all jobs
  std::map<Incarnation, RoundName> started_;  // the newest round of each node
  std::set<Incarnation> acked_;
  std::set<Incarnation> unusable_;  // nodes that left because SIGKILL did not end a worker there
  // Workers of each node, as registered: an assignment may be sent when its members have left
  // already (R18).
  std::map<Incarnation, int64_t> nproc_;
  std::set<std::pair<Incarnation, RoundNumber>> unreported_failure_;  // failures that agents know
  std::set<RoundName> formed_in_call_;                                // in the current call
  int64_t rounds_formed_ = 0;
  std::vector<std::string> broken_;
};

}  // namespace cpprun::sim
