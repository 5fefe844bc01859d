#include "rendezvous/coordinator/job_recovery.hpp"

#include <utility>

namespace cpprun {

JobRecovery::JobRecovery(const JobOptions& options, const control::JobSpec& job_spec)
    : job_spec_(job_spec),
      own_term_(options.term),
      own_first_term_(options.first_term),
      own_key_(options.job_key),
      is_standby_(options.is_standby) {
  if (is_standby_) open_.emplace(Recovery::Kind::AsStandby, job_spec_.lease);
}

void JobRecovery::restore(const control::PersistedJobState& persisted, const JobView& job) {
  job.state.round = Round(persisted.round);
  job.state.first_term = persisted.first_term;
  if (persisted.host_records) job.state.hosts.learn(*persisted.host_records);
  if (persisted.decided) {
    continued_term_ = persisted.term;
    return;
  }
  if (persisted.round == RoundNumber()) return;
  open_.emplace(Recovery::Kind::FromState, job_spec_.lease);
  restore(assignment_of(persisted, job_spec_), job);
  job.state.snapshots.set_fetched(persisted.is_resume_fetched);
}

void JobRecovery::restore(Instant now, const control::Register& message, bool is_new,
                          const JobView& job) {
  JobState& state = job.state;
  if (is_new && is_from_other_coordinator(message.assignment, state)) {
    open_.emplace(is_standby_ ? Recovery::Kind::AsStandby : Recovery::Kind::Endpoint,
                  job_spec_.lease);
    state.first_term = Term(1);
    job.formation.on_too_few_nodes();
  }
  if (!is_open()) {
    // Too late for its round, but its counts of restarts still matter.
    if (!continued_term_ || !is_from_other_coordinator(message.assignment, state)) return;
    state.budgets.learn(*message.assignment);
    return;
  }
  open_->start(now);
  if (message.term > state.term) state.term = next_term_after(message.term, own_term_);
  state.needs_admin_token =
      state.needs_admin_token || (message.assignment && message.assignment->needs_admin_token);
  if (is_from_other_coordinator(message.assignment, state)) restore(*message.assignment, job);
}

void JobRecovery::restore(const control::RankAssignment& assignment, const JobView& job) {
  if (!open_->restore(assignment)) return;
  job.state.restore(assignment);
  job.failures.restart();
  job.formation.on_restored(static_cast<size_t>(assignment.group_size));
}

void JobRecovery::adopt(Instant now, Node& node, const JobView& job) {
  if (!open_->on_registered(now, node)) return;
  Round& round = job.state.round;
  node.group_rank = node.facts.assignment->group_rank;
  round.add(node.id.incarnation, *node.facts.assignment);
  if (node.worker_phase == Node::WorkerPhase::Done) round.mark_done(node.id.incarnation);
  if (node.facts.charged == control::RestartCharge::None) return;
  open_->require_stop();
  job.failures.charge_as_reported(round.number(), node.facts.charged, job.state.budgets);
}

void JobRecovery::require_stop() {
  if (open_) open_->require_stop();
}

void JobRecovery::note_loss() {
  if (open_) open_->note_loss();
}

Recovery JobRecovery::close() { return *std::exchange(open_, std::nullopt); }

bool JobRecovery::is_from_other_coordinator(const Assignment& assignment,
                                            const JobState& state) const {
  return assignment && assignment->term != state.term && !is_of_other_job(assignment, state) &&
         (assignment->term < own_first_term_ || assignment->term > own_term_);
}

bool JobRecovery::is_of_other_job(const Assignment& assignment, const JobState& state) const {
  const std::string& key = is_open() ? own_key_ : state.job_key;
  return assignment && !key.empty() && assignment->job_key != key;
}

bool JobRecovery::has_led(const control::Register& message, const JobState& state) const {
  const Term term = message.term;
  const bool was_before = continued_term_ && term > Term() && term < state.term;
  return (term == state.term || was_before) && !is_of_other_job(message.assignment, state);
}

}  // namespace cpprun
