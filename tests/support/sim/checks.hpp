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
#include "rendezvous/coordinator/job.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::sim {

// A round of one job under one coordinator.
struct RoundName {
  Term term;
  RoundNumber round;
  auto operator<=>(const RoundName&) const = default;
};

// Nothing was formed or granted yet: what agents bring is all there is.
bool has_no_memory(const Job& job);

class Checks {
 public:
  const std::vector<std::string>& broken() const { return broken_; }
  void require(bool holds, const std::string& what) {
    if (!holds && broken_.size() < kKept) broken_.push_back(what);
  }

  // ---- the true state of workers
  void on_workers_live(const RoundName& round, int64_t count);
  void on_workers_gone(const RoundName& round, int64_t count);
  // A worker failed by itself, without a stop request, or could not be started.
  void on_true_failure(const std::string& host, const RoundName& round) {
    failing_rounds_.insert(round);
    failures_of_[host].insert(round);
  }
  // The agent learned of such an exit while its round ran, and must report it.
  void on_reported_failure(Incarnation node, const RoundName& round) {
    unreported_failure_.emplace(node, round.round);
  }
  int64_t live_workers_of(Term term, RoundNumber round) const;  // in any term of the job
  int64_t live_workers() const { return live_in_all_; }

  // ---- an agent
  void on_start(Incarnation node, const control::RankAssignment& assignment, Term registered_in);
  void on_finish(Term term, bool has_workers, const agent::Finish& finish);

  // It becomes the job's coordinator; it last registered with a coordinator of this term.
  void on_promotion(Incarnation node, Term registered_in);

  // ---- a coordinator; all that one call of it sent
  void on_sent(const Job* job, Incarnation to, const control::CoordinatorMessage& message);
  // To a node of a job that was decided in this term, from a coordinator that leads the next job.
  void on_sent_to_ended_job(Term decided_in, Incarnation to,
                            const control::CoordinatorMessage& message);
  void after_call(const Job* job);
  // A coordinator continues a round that another one has formed: one job in two terms.
  void on_continued(const Job& by, Term formed_in);
  // `coordinator`, which received the message, has this term; `term` is that of the job that it
  // leads, if it knows one already.
  void on_received(Term coordinator, Term term, Incarnation from,
                   const control::AgentMessage& message);

  // The link of the node with this link port is bad, so it may be left out.
  void note_bad_link(int64_t port) { bad_links_.insert(port); }
  // A link may have failed before and pass now, as if it were the other node's fault.
  void note_links_mended() { are_links_mended_ = true; }

  int64_t rounds_formed() const { return rounds_formed_; }

 private:
  static constexpr size_t kKept = 20;

  struct Round {
    control::RankAssignment first;
    std::map<Incarnation, control::RankAssignment> assignments;
    bool was_stopped_by_failure = false;
    bool was_stopped_by_loss = false;
  };
  struct JobRecord {
    RoundName newest;
    int64_t budget_used = 0;
    int64_t hangs_used = 0;
    int64_t losses_used = 0;
    std::map<RoundName, Round> rounds;
    std::optional<control::JobResult> decided;
    Term decided_in;
    std::set<Incarnation> informed;  // nodes that received the outcome
    bool is_success_sent = false;
    bool is_failure_sent = false;
    std::set<Incarnation> must_acknowledge;  // before the first bye
    std::set<std::string> excluded;          // by --exclude-after so far
    bool is_pardoned = false;                // one more since the newest round
    Term unusable_in;  // in which the coordinator learned that a node of the newest round is
                       // unusable
  };

  // The first term of the job that continues in this one.
  Term root(Term term) const;
  JobRecord& job_of(Term term) { return jobs_[root(term)]; }
  bool are_one_job(const RoundName& a, const RoundName& b) const {
    return root(a.term) == root(b.term);
  }
  void on_assignment(JobRecord& job, Incarnation to, const control::RankAssignment& assignment);
  void on_new_round(JobRecord& job, const control::RankAssignment& assignment);
  void check_budgets(const JobRecord& job, const control::RankAssignment& assignment);
  void on_job_result(JobRecord& job, const Job& led, Incarnation to,
                     const control::JobResult& decided);
  void require_acknowledged(const JobRecord& job, Incarnation to);
  void on_bye(JobRecord& job, const Job& led, Incarnation to);
  void on_host_records(const control::HostRecords& message);
  void note_exclusions(JobRecord& job, const HostLedger& hosts);
  void check_places(const Job& led, Incarnation to);
  void check_unusable(const Job& led);
  void check_ranks(const Round& round, const std::string& where);

  std::map<Term, Term> continued_;  // a term, and the earlier term that it continues
  std::set<Term> started_over_;     // after an outcome that no remaining node knows
  std::map<Term, JobRecord> jobs_;  // by the job's first term
  std::map<RoundName, int64_t> live_;
  int64_t live_in_all_ = 0;
  std::set<RoundName> failing_rounds_;                      // of all jobs
  std::map<std::string, std::set<RoundName>> failures_of_;  // by host
  std::map<Incarnation, RoundName> started_;                // the newest round of each node
  std::set<Incarnation> acked_;
  std::set<Term> informed_of_outcome_;  // coordinators to which a node reported the outcome
  bool has_unusable_node_ = false;      // SIGKILL did not end a worker on some node, and it left
  // Workers of each, as it registered: a round may be sent when its members are gone already (R18).
  std::map<Incarnation, int64_t> nproc_;
  std::set<std::pair<Incarnation, RoundNumber>> unreported_failure_;  // failures that agents know
  std::set<RoundName> formed_in_call_;                                // in the current call
  bool are_links_mended_ = false;
  std::set<int64_t> bad_links_;  // by link port
  int64_t rounds_formed_ = 0;
  std::vector<std::string> broken_;
};

}  // namespace cpprun::sim
