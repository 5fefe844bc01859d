// Job: nodes that are lost, and time.
#include <algorithm>

#include "common/check.hpp"
#include "common/limits/rendezvous.hpp"
#include "rendezvous/coordinator/job.hpp"

namespace cpprun {

using control::StopCause;

// ---------------------------------------------------------------- losses

void Job::on_closed(Instant now, SessionId session, Ending how, Effects& effects) {
  Node* node = find(session);
  if (node == nullptr) return;  // an older connection: changes nothing (R4)
  sessions_.erase(session);
  node->session.reset();
  Incarnation incarnation = node->id.incarnation;
  bool has_part = phase_ != Phase::Ended &&
                  (node->has_workers() || node->worker_phase == Node::WorkerPhase::Done);
  // The agent in our own process has no lease that could end; one that was asked to stop is going.
  const bool is_going = node->is_embedded && node->is_draining();
  if (node->is_embedded && is_host_agent_ended_) {
    on_node_lost(incarnation, StopCause::NodeLeft, host_agent_text(*node), effects);
  } else if (how == Ending::Reset && phase_ != Phase::Ended && !is_going) {
    // No evidence, only the start of a silence: it may connect again, else its lease ends (R4, R5).
    update_ready(*node);
  } else if (has_part) {
    node->liveness = Node::Liveness::Dead;  // R4; its workers are gone after the grace
    node->dead_at = now;
    next_node_expiry_ = std::min(next_node_expiry_, now + limits::kDeathGrace);
    update_ready(*node);
    if ((phase_ == Phase::Running || is_recovering()) && !done_.contains(incarnation)) {
      request_stop(StopCause::NodeLost, "the agent on " + node->id.name + " died", effects);
    }
  } else {
    on_node_lost(incarnation, StopCause::NodeLost, "the agent on " + node->id.name + " went away",
                 effects);
  }
  advance(now, effects);
}

// Its connection may have broken before it could say that it leaves, and no lease of it ends.
void Job::on_host_agent_ended(Instant now, Effects& effects) {
  is_host_agent_ended_ = true;
  for (const auto& [incarnation, node] : nodes_) {
    if (!node.is_embedded) continue;
    is_host_drained_ = true;
    if (node.is_connected()) return;  // what it has sent last comes, or its connection closes
    const std::string why = host_agent_text(node);
    effects.push_back(LogEvent{LogEvent::Level::Info, "node_lost", why});
    on_node_lost(incarnation, StopCause::NodeLeft, why, effects);
    break;
  }
  advance(now, effects);
}

std::string Job::host_agent_text(const Node& node) {
  return "the agent on " + node.id.name + " has ended";
}

// Its workers are certainly gone. `why` is told to the others if the round can't go on without it.
void Job::on_node_lost(Incarnation incarnation, StopCause cause, const std::string& why,
                       Effects& effects) {
  auto it = nodes_.find(incarnation);
  CPPRUN_CHECK(it != nodes_.end());
  if (cause == StopCause::NodeLost && is_member(incarnation) && !done_.contains(incarnation)) {
    has_saved_ = false;
  }
  if (it->second.session) sessions_.erase(*it->second.session);
  nodes_.erase(it);
  ready_.erase(incarnation);
  pending_.erase(incarnation);
  bool ends_round = is_member(incarnation) && !done_.contains(incarnation);  // R3, R8
  if (ends_round) request_stop(cause, why, effects);
}

void Job::on_leave(const Node& node, const control::Leave& message, Effects& effects) {
  const Incarnation incarnation = node.id.incarnation;
  has_saved_ = has_saved_ && (message.has_saved || !is_member(incarnation));
  const std::string why = node.id.name + " left (" + message.why + ")";
  if (message.is_unusable && is_member(incarnation)) {
    unusable_node_ = why;
    // Its process ends, and with it this coordinator, if another node can lead the job (R15).
    is_host_drained_ = is_host_drained_ || node.is_embedded;
    effects.push_back(LogEvent{LogEvent::Level::Warning, "node_unusable", why});
  }
  on_node_lost(incarnation, StopCause::NodeLeft, why, effects);
}

// Nodes that can be in a round, at once or when they are back in touch.
int64_t Job::nodes_left() const {
  return std::count_if(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    const Node& node = entry.second;
    return node.liveness == Node::Liveness::Present && !node.is_draining();
  });
}

void Job::expire_dead_nodes(Instant now, Effects& effects) {
  std::vector<Incarnation> gone;
  next_node_expiry_ = Instant::never();
  for (const auto& [incarnation, node] : nodes_) {
    if (node.liveness != Node::Liveness::Dead) continue;
    Instant burial = node.dead_at + limits::kDeathGrace;
    if (burial <= now) {
      gone.push_back(incarnation);
    } else {
      next_node_expiry_ = std::min(next_node_expiry_, burial);
    }
  }
  for (Incarnation incarnation : gone) {
    on_node_lost(incarnation, StopCause::NodeLost, "an agent died", effects);
  }
}

void Job::expire_node_leases(Instant now, Effects& effects) {
  std::vector<Incarnation> lost;
  next_lease_end_ = Instant::never();
  if (is_recovering()) return;  // nobody has a lease yet, and who has no workers does not ping
  for (const auto& [incarnation, node] : nodes_) {
    if (has_no_live_workers(node) || node.liveness != Node::Liveness::Present) continue;
    Instant end = node.heard_at + job_spec_.lease;
    if (end <= now) {
      lost.push_back(incarnation);
    } else {
      next_lease_end_ = std::min(next_lease_end_, end);
    }
  }
  for (Incarnation incarnation : lost) {  // R5
    const Node& node = nodes_.at(incarnation);
    std::string why = "nothing was heard from " + node.id.name + " for " +
                      std::to_string(static_cast<int64_t>(to_seconds(job_spec_.lease))) + " s";
    // A round that ends of it is said by the agents whose workers stop.
    const bool is_told =
        phase_ == Phase::Running && is_member(incarnation) && !done_.contains(incarnation);
    effects.push_back(
        LogEvent{is_told ? LogEvent::Level::Info : LogEvent::Level::Warning, "node_lost", why});
    if (node.session) effects.emplace_back(Close{*node.session, true});
    // It comes back with its belief, and so may who believes it: standbys change on evidence only.
    if (standby_ && standby_->node == incarnation) {
      is_standby_lost_ = true;
      standby_.reset();  // it may be back before the next round, which names none
    }
    on_node_lost(incarnation, StopCause::NodeLost, why, effects);
  }
}

// ---------------------------------------------------------------- time

// A ping and its answer must fit twice into the time before a granted worker gets TERM.
Duration Job::heartbeat() const {
  constexpr Duration kNotice = std::chrono::seconds(1);
  const Duration most = worker_lease_of(job_spec_.lease);
  const Duration safe = most < 2 * kNotice ? most / 2 : most - kNotice;
  return std::min(job_spec_.heartbeat, safe / 2);
}

void Job::on_time(Instant now, Effects& effects) {
  if (now >= next_node_expiry_) expire_dead_nodes(now, effects);
  if (now >= next_lease_end_) expire_node_leases(now, effects);
  if (now >= growth_deadline()) grow_if_due(now, effects);
  if (now >= report_waiting_at_) report_waiting(now, effects);
  advance(now, effects);
}

Instant Job::next_deadline() const {
  Instant recovery_end = Instant::never();
  if (recovery_ && may_lead()) {
    recovery_end = std::min(recovery_->ends_at, recovery_->host_gone_at);
  }
  return std::min({next_node_expiry_, next_lease_end_, last_call_deadline(), growth_deadline(),
                   report_waiting_at_, recovery_end});
}

}  // namespace cpprun
