#include "rendezvous/coordinator/recovery.hpp"

#include <algorithm>
#include <utility>

#include "common/limits/election.hpp"
#include "common/limits/rendezvous.hpp"
#include "rendezvous/coordinator/snapshot_choice.hpp"

namespace cpprun {
namespace {

// The processes of a dead agent are gone after this time, on the slowest clock.
constexpr Duration kProcessesGone = limits::kDeathGrace / 100 * (100 + limits::kClockDriftPercent);

}  // namespace

void Recovery::start(Instant now) {
  if (!ends_at_.is_never()) return;
  const bool is_written = kind_ == Kind::FromState;
  ends_at_ = now + (is_written ? limits::kLastCall : lease_);
  if (kind_ == Kind::AsStandby) host_gone_at_ = now + kProcessesGone;
  if (is_written) host_gone_at_ = now + limits::kHostLossDelay;
}

bool Recovery::restore(const control::RankAssignment& assignment) {
  const control::RankAssignment& known = newest_;
  if (std::pair(assignment.term, assignment.round) <= std::pair(known.term, known.round)) {
    return false;
  }
  newest_ = assignment;
  seen_.clear();
  has_lost_member_ = is_stop_requested_ = false;
  is_proven_ = kind_ == Kind::FromState;
  has_evidence_ = false;
  must_stop_ = assignment.is_agent_store;  // its store has ended with its coordinator
  return true;
}

bool Recovery::on_registered(Instant now, const Node& node) {
  registered_.insert(node.id.incarnation);
  const std::optional<control::RankAssignment>& assignment = node.facts.assignment;
  reports_[node.id.incarnation] = {assignment ? assignment->job_key : "", node.facts.decided};
  if (!assignment || assignment->term != newest_.term || assignment->round != newest_.round) {
    return false;
  }
  seen_.insert(assignment->group_rank);
  is_stop_requested_ = is_stop_requested_ || node.facts.is_stop_requested;
  // Where there is a standby, only its evidence counts: it may have taken over since that death,
  // and other members need not know.
  const bool is_witness = !newest_.standby || newest_.standby->node == node.id.incarnation;
  if (is_witness && node.facts.has_evidence) on_leader_death_known(now);
  if (!node.has_workers() && node.worker_phase != Node::WorkerPhase::Done) must_stop_ = true;
  if (node.facts.has_worker_lease) is_proven_ = true;
  return true;
}

// A job that a standby leads elsewhere: its coordinator has died, perhaps a moment ago. The worker
// leases that it has issued to other nodes last for up to a node lease from now (I1).
void Recovery::on_leader_death_known(Instant now) {
  if (std::exchange(has_evidence_, true) || !newest_.is_led_by_standby) return;
  ends_at_ = std::max(ends_at_, now + lease_);
}

// If the newest round has a standby, only that standby may lead the job, or a coordinator with
// which it has registered: the standby has not taken over then, and without a worker lease it
// never will (R13). A job that a standby leads elsewhere may still be led there, unless an agent
// has evidence of that coordinator's death (R16).
bool Recovery::may_lead() const {
  if (kind_ == Kind::AsStandby) return true;
  if (newest_.is_led_by_standby && !has_evidence_) return false;
  return !newest_.standby || registered_.contains(newest_.standby->node);
}

const control::JobResult* Recovery::result() const {
  if (newest_.job_key.empty()) return nullptr;
  const auto witnesses = std::count_if(reports_.begin(), reports_.end(), [this](const auto& entry) {
    return entry.second.job_key == newest_.job_key;
  });
  if (witnesses < 2) return nullptr;
  for (const auto& [node, report] : reports_) {
    if (is_claim(report)) return &*report.result;
  }
  return nullptr;
}

bool Recovery::is_result_unconfirmed() const {
  return kind_ != Kind::FromState && result() == nullptr &&
         std::any_of(reports_.begin(), reports_.end(),
                     [this](const auto& entry) { return is_claim(entry.second); });
}

bool Recovery::is_over(Instant now, const Round& round) {
  if (!may_lead()) return false;
  if (now >= host_gone_at_) {
    host_gone_at_ = Instant::never();
    is_host_gone_ = true;
  }
  const bool is_host_gone =
      is_host_gone_ && newest_.host_rank >= 0 && !seen_.contains(newest_.host_rank);
  const bool is_whole = seen_count() + (is_host_gone ? 1 : 0) >= newest_.group_size;
  const bool is_known = (is_whole && is_proven_) || result() != nullptr;
  if (!is_known && now < ends_at_) return false;
  // Otherwise the worker leases have ended, and with them the workers of the round.
  const bool may_workers_live = is_known && kind_ != Kind::FromState;
  if (!may_workers_live && !round.are_all_done()) must_stop_ = true;
  if (seen_count() < newest_.group_size) must_stop_ = true;
  return true;
}

Instant Recovery::next_deadline() const {
  return may_lead() ? std::min(ends_at_, host_gone_at_) : Instant::never();
}

control::RankAssignment assignment_of(const control::PersistedJobState& state,
                                      const control::JobSpec& job_spec) {
  control::RankAssignment newest;
  newest.term = state.term;
  newest.round = state.round;
  newest.group_size = state.group_size;
  newest.host_rank = state.host_rank;
  newest.is_agent_store = job_spec.is_agent_store;
  newest.restart_count = std::min(state.restart_count, job_spec.max_restarts);
  newest.hang_restarts = std::min(
      state.hang_restarts, job_spec.max_hangs < 0 ? job_spec.max_restarts : job_spec.max_hangs);
  newest.budgets.emplace().node_losses =
      std::min(state.node_losses, std::max<int64_t>(0, job_spec.max_node_losses));
  newest.admin_restarts = state.admin_restarts;
  newest.past_failures = state.past_failures;
  if (state.wanted_nodes) {
    newest.wanted_nodes = std::clamp(*state.wanted_nodes, job_spec.min_nodes, job_spec.max_nodes);
  }
  if (state.resume && are_sane({*state.resume})) newest.resume.emplace().snapshot = *state.resume;
  return newest;
}

// Standbys count terms by ones, so the step keeps clear of theirs. The remainder of `own` makes it
// unlikely that two starts choose the same term. Both are small: a clock that is right again soon
// exceeds them.
Term next_term_after(Term seen, Term own) {
  constexpr int64_t kStride = 1'000;  // milliseconds
  return Term(seen.value + kStride + own.value % kStride);
}

}  // namespace cpprun
