#include "tests/support/sim/election_checks.hpp"

#include <variant>

#include "common/limits/rendezvous.hpp"

namespace cpprun::sim {

namespace {

std::string name_of(Term term, RoundNumber round) {
  return "round " + std::to_string(round.value) + " of term " + std::to_string(term.value);
}

}  // namespace

// Once a job is decided, or was asked to end, another one of the same name may start.
void ElectionChecks::on_job_state(const std::string& job_state_key,
                                  const Result<control::PersistedJobState>& read) {
  checks_.require(read.ok(), "R18: what is written can't be read");
  if (!read) return;
  const control::PersistedJobState& facts = *read;
  Job& job = jobs_[job_state_key];
  if (!job.newest.empty()) {
    const control::PersistedJobState& last = job.newest.rbegin()->second;
    const bool may_begin_anew = last.decided || job.left.contains(last.term);
    const std::string where = "R18: " + name_of(facts.term, facts.round) + " is written after " +
                              name_of(last.term, last.round) + ", and ";
    checks_.require(last.term <= facts.term, where + "leads no more");
    checks_.require(may_begin_anew || last.round <= facts.round, where + "does not know it");
    checks_.require(may_begin_anew || (last.restart_count <= facts.restart_count &&
                                       last.node_losses <= facts.node_losses),
                    where + "forgets its restarts");
  }
  job.newest[facts.term] = facts;
  if (facts.decided) job.decided.insert(facts.term);
}

void ElectionChecks::on_given_back() {
  checks_.require(checks_.live_workers() == 0,
                  "R18: the lease is given back while workers of the job live");
}

// Others may lead as soon as the lease has ended, and a worker takes this long to die.
void ElectionChecks::on_leader_lease(const control::Leader& leader, Instant now, Instant until,
                                     Instant lease_ends) {
  checks_.require(
      until <= now || until + limits::kKillDuration <= lease_ends,
      "R18: " + leader.node.name + " may issue worker leases longer than its lease lasts");
}

void ElectionChecks::on_outcome(const std::string& run_id, Term by,
                                const control::CoordinatorMessage& message) {
  Job& job = jobs_[control::job_state_key(run_id)];
  if (const auto* assignment = std::get_if<control::RankAssignment>(&message)) {
    const auto written = job.newest.find(assignment->term);
    checks_.require(
        written != job.newest.end() && written->second.round >= assignment->round,
        "R18: " + name_of(assignment->term, assignment->round) + " is sent before it is written");
  } else if (std::holds_alternative<control::JobResult>(message)) {
    const bool is_written = !job.decided.empty() && *job.decided.begin() <= by;
    checks_.require(is_written, "R18: an outcome is sent before it is written");
  } else if (std::holds_alternative<control::ShutdownRequest>(message)) {
    job.left.insert(by);
  }
}

}  // namespace cpprun::sim
