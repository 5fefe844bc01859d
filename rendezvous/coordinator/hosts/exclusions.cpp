#include "rendezvous/coordinator/hosts/exclusions.hpp"

#include "rendezvous/coordinator/waiting_nodes.hpp"

namespace cpprun {

std::vector<std::string> count_faults_of_round(control::StopCause cause,
                                               const control::JobSpec& job_spec,
                                               const NodeTable& nodes, JobState& state,
                                               FailureRecord& failures) {
  // A worker that failed in a round which another node ended may have been killed at the end of its
  // worker lease: no fault of its host.
  const bool has_failed = cause == control::StopCause::Failure;
  const HostLedger::RoundResult result =
      state.hosts.end_round(has_failed ? failures.root_cause() : nullptr, state.round.size());
  const bool can_continue = nodes.usable_count(state.hosts) >= job_spec.min_nodes;
  const RoundNumber round = state.round.number();
  if (result.is_cause_excluded && can_continue) {
    failures.pardon(round);
    state.budgets.refund(round);
  } else if (!result.fatal_start.empty() && !can_continue) {
    failures.fail_job(result.fatal_start + state.budgets.used_text(false));
  }
  return result.excluded;
}

std::string exclusion_text(const std::string& host, const control::JobSpec& job_spec,
                           const NodeTable& nodes, const JobState& state,
                           const FailureRecord& failures) {
  // Before the first round the job wants as many nodes as it may have.
  const size_t members =
      state.round.is_empty() ? static_cast<size_t>(state.admin.max_nodes()) : state.round.size();
  const std::string next =
      failures.is_job_failing()
          ? ""
          : "; " + what_follows(nodes.usable_count(state.hosts), job_spec, members);
  return host + " is excluded: " + state.hosts.find(host)->reason + next;
}

}  // namespace cpprun
