// JobRecovery: how this coordinator continues a job that others have led (R13, R16 to R18). It
// distinguishes their rank assignments from its own and from those of other jobs, and restores the
// state of the job from them, or from the persisted state. While it is open, Recovery decides
// whether the job can continue.
//
// A core: no I/O, no clock.
#pragma once

#include <optional>
#include <string>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/failure_record.hpp"
#include "rendezvous/coordinator/job_options.hpp"
#include "rendezvous/coordinator/job_state.hpp"
#include "rendezvous/coordinator/node.hpp"
#include "rendezvous/coordinator/recovery.hpp"
#include "rendezvous/coordinator/rounds/round_formation.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun {

class JobRecovery {
 public:
  using Assignment = std::optional<control::RankAssignment>;

  // The parts of the job that are restored.
  struct JobView {
    JobState& state;
    FailureRecord& failures;
    RoundFormation& formation;
  };

  // Open from the beginning where this process is the standby of a dead coordinator.
  JobRecovery(const JobOptions& options, const control::JobSpec& job_spec);

  // The leader lease of the former coordinator is gone, so all workers of its rounds are dead. The
  // persisted state holds everything that it has sent to nodes. Only nodes that register again are
  // waited for.
  void restore(const control::PersistedJobState& persisted, const JobView& job);
  // An agent registers. Call before the node is added: its report may be newer than all that this
  // coordinator knows. `is_new`: no round has formed yet, here or at a former coordinator.
  void restore(Instant now, const control::Register& message, bool is_new, const JobView& job);
  // The node is added. Requires: is_open().
  void adopt(Instant now, Node& node, const JobView& job);
  // The newest round can't continue as it is. No effect unless is_open().
  void require_stop();
  // A member was lost after it had registered. No effect unless is_open().
  void note_loss();
  // Ends the recovery. Requires: is_open().
  Recovery close();
  // The job continues from a round that was formed in that term.
  void on_continued(Term term) { continued_term_ = term; }

  bool is_open() const { return open_.has_value(); }
  // The recovery is open, and over by now.
  bool is_over(Instant now, const Round& round) { return open_ && open_->is_over(now, round); }
  Instant next_deadline() const { return open_ ? open_->next_deadline() : Instant::never(); }
  // The term of the round, formed by another coordinator, from which this one continues.
  std::optional<Term> continued_term() const { return continued_term_; }

  // The assignment was made by another process. What this process has formed is known here, or
  // over.
  bool is_from_other_coordinator(const Assignment& assignment, const JobState& state) const;
  // It does not hold the key of this job: another job by the same name, or another program. While a
  // coordinator recovers a job that is new to it, the newest assignment decides which job it is.
  bool is_of_other_job(const Assignment& assignment, const JobState& state) const;
  // Whether this agent took part in the job. A job that continues from a former coordinator may
  // have had several before.
  bool has_led(const control::Register& message, const JobState& state) const;

 private:
  void restore(const control::RankAssignment& assignment, const JobView& job);

  const control::JobSpec job_spec_;
  const Term own_term_;
  const Term own_first_term_;
  const std::string own_key_;
  const bool is_standby_;
  std::optional<Recovery> open_;
  std::optional<Term> continued_term_;
};

}  // namespace cpprun
