#include "rendezvous/coordinator/job_state.hpp"

#include "rendezvous/coordinator/repeats/failure_repeats.hpp"
#include "rendezvous/coordinator/rounds/ranking.hpp"

namespace cpprun {

std::vector<control::RankAssignment> JobState::assign(const std::vector<Node*>& ranked,
                                                      const control::JobSpec& job_spec,
                                                      int64_t store_port, const NodeTable& nodes,
                                                      bool is_led_by_standby) {
  if (job_key.empty() && make_secret_) job_key = make_secret_();
  std::vector<control::RankAssignment> assignments = make_assignments(ranked, job_spec, store_port);
  std::vector<bool> are_new;
  for (size_t i = 0; i < ranked.size(); ++i) {
    are_new.push_back(!ranked[i]->group_rank);
    ranked[i]->group_rank = static_cast<int64_t>(i);
    control::RankAssignment& assignment = assignments[i];
    assignment.term = term;
    assignment.round = round.number();
    assignment.restart_count = budgets.failures().used();
    assignment.hang_restarts = budgets.hangs().used();
    assignment.max_restarts = budgets.failures().max();
    assignment.budgets = budgets.by_class();
    assignment.admin_restarts = admin.restarts();
    assignment.wanted_nodes = admin.wanted_nodes();
    assignment.needs_admin_token = needs_admin_token;
    assignment.job_key = job_key;
    if (past_failures != control::PastFailures()) assignment.past_failures = past_failures;
  }
  standby.choose(ranked, nodes, is_led_by_standby, assignments);
  snapshots.choose(ranked, assignments);
  snapshots.add_replicas(ranked, are_new, assignments);
  return assignments;
}

void JobState::restore(const control::RankAssignment& assignment) {
  round = Round(assignment.round);
  job_key = assignment.job_key;
  budgets.restore(assignment);
  past_failures = sane(assignment.past_failures.value_or(control::PastFailures()));
  snapshots.restore(assignment);
  standby.restore(assignment);
  admin.restore(assignment);
}

control::PersistedJobState JobState::to_persist() const {
  control::PersistedJobState state;
  state.term = term;
  state.first_term = first_term;
  state.round = round.number();
  if (!round.is_empty()) {  // of a recovered round only the nodes that came back are known
    const control::RankAssignment& any = round.assignments().begin()->second;
    state.group_size = any.group_size;
    state.host_rank = any.host_rank;
  }
  state.restart_count = budgets.failures().used();
  state.hang_restarts = budgets.hangs().used();
  if (const RestartBudget* losses = budgets.losses()) state.node_losses = losses->used();
  state.admin_restarts = admin.restarts();
  state.wanted_nodes = admin.wanted_nodes();
  state.past_failures = past_failures;
  state.resume = snapshots.resume();
  state.is_resume_fetched = snapshots.is_fetched();
  if (hosts.is_shared()) state.host_records = hosts.to_report();
  return state;
}

}  // namespace cpprun
