#include "rendezvous/coordinator/rounds/round_formation.hpp"

#include <algorithm>
#include <utility>

namespace cpprun {

RoundFormation::RoundFormation(std::string run_id, const control::JobSpec& job_spec,
                               Effects& effects)
    : run_id_(std::move(run_id)),
      lease_(job_spec.lease),
      is_store_on_main_port_(job_spec.is_store_on_main_port),
      schedule_(job_spec),
      backoff_(job_spec.restart_backoff),
      links_(job_spec.link_check_bytes) {
  if (!is_store_on_main_port_) effects.push_back(WantStorePort{run_id_});
}

void RoundFormation::on_store_port(int64_t port) {
  if (port != 0) store_port_ = port;
  is_port_refused_ = port == 0;  // is_due() asks again
}

void RoundFormation::on_time(Instant now) {
  redirect_wait_.on_time(now);
  backoff_.on_time(now);
}

bool RoundFormation::is_due(Instant now, const JobView& job, const LinkChecks::JobView& links,
                            Effects& effects) {
  if (std::exchange(is_port_refused_, false)) effects.push_back(WantStorePort{run_id_});
  schedule_.on_enough_nodes(now);
  if (is_held_back(job)) return false;
  const bool may_wait = job.state.round.is_empty() && !links_.are_running() &&
                        job.nodes.ready_count() < job.state.admin.max_nodes();
  if (may_wait && now < last_call_deadline(job)) return false;
  return links_.are_done(now, links, effects);
}

void RoundFormation::on_formed(size_t nodes, Effects& effects) {
  schedule_.on_round(nodes);
  if (is_store_on_main_port_) return;
  store_port_.reset();
  effects.push_back(WantStorePort{run_id_});
}

Instant RoundFormation::growth_deadline(const JobView& job) const {
  const Round& round = job.state.round;
  const bool may_grow = job.phase == JobPhase::Running && !round.is_any_done() &&
                        !job.nodes.ready().empty() &&
                        static_cast<int64_t>(round.size()) < job.state.admin.max_nodes();
  return may_grow ? schedule_.growth_deadline(round.size()) : Instant::never();
}

// There are enough nodes, but a round must not form yet. An event, or backoff_, ends that.
bool RoundFormation::is_held_back(const JobView& job) const {
  return !has_store_port() || job.state.standby.is_awaited(job.nodes) || job.is_leaving ||
         awaits_redirect(job) || backoff_.is_on();
}

// A restarted coordinator at the endpoint, to which only nodes have returned that were in no round:
// the standby that they know leads the job elsewhere, or is about to. It takes the job over before
// its worker lease ends, and then sends its address; if it does not, it is dead too.
bool RoundFormation::awaits_redirect(const JobView& job) const {
  if (job.state.round.number() != RoundNumber() || !redirect_wait_.is_on()) return false;
  return std::any_of(job.nodes.begin(), job.nodes.end(), [](const auto& entry) {
    return entry.second.is_connected() && entry.second.facts.knows_standby;
  });
}

std::string RoundFormation::why_not(const JobView& job, bool has_enough_nodes) const {
  if (awaits_redirect(job)) {
    return "its standby coordinator leads this job; waiting for the address";
  }
  if (backoff_.is_on() && has_enough_nodes) return backoff_.text();
  return links_.are_running() ? "the network links of the nodes are checked (--link-check)" : "";
}

Instant RoundFormation::last_call_deadline(const JobView& job) const {
  const bool is_waiting = job.phase == JobPhase::WaitingForNodes && job.state.round.is_empty();
  if (!is_waiting || is_held_back(job) || links_.are_running()) return Instant::never();
  return schedule_.last_call_deadline(static_cast<size_t>(job.nodes.ready_count()));
}

Instant RoundFormation::link_deadline(const JobView& job) const {
  const bool may_form = job.phase == JobPhase::WaitingForNodes && !is_held_back(job);
  return may_form ? links_.next_deadline() : Instant::never();
}

Instant RoundFormation::next_deadline(const JobView& job) const {
  return std::min({last_call_deadline(job), growth_deadline(job), redirect_wait_.next_deadline(),
                   backoff_.next_deadline(), link_deadline(job)});
}

}  // namespace cpprun
