#include "agent/core/node_leases.hpp"

#include <algorithm>

#include "common/limits/election.hpp"

namespace cpprun::agent {

void NodeLeases::on_registered(Instant now, const control::Registered& message, Effects& effects) {
  const bool existed = exist();
  heartbeat_ = message.heartbeat;
  lease_ = message.lease;
  if (exist() && !existed) ping(now, effects);
  if (!exist()) ping_at_ = Instant::never();
}

void NodeLeases::ping(Instant now, Effects& effects) {
  effects.push_back(SendMessage{control::Ping{worker_lease_.on_ping_sent(now)}});
  ping_at_ = now + heartbeat_;
}

// While etcd does not answer, the coordinator issues only the rest of its own lease. An early ping
// extends the worker lease as soon as etcd answers again (R18).
void NodeLeases::ping_sooner(Instant now) {
  const Duration half = (worker_lease_.sigterm_at() - now) / 2;
  ping_at_ = std::min(ping_at_, now + std::max(half, limits::kPingIntervalMin));
}

bool NodeLeases::on_pong(Instant now, const control::Pong& message) {
  const bool is_longer = worker_lease_.on_pong(message.seq, message.worker_lease);
  if (is_longer && now < worker_lease_.deadline()) resume_wait_.end();
  return is_longer;
}

void NodeLeases::on_disconnected() {
  ping_at_ = Instant::never();
  worker_lease_.on_disconnected();
  resume_wait_.end();
}

Instant NodeLeases::stop_at() const {
  return exist() ? std::max(worker_lease_.sigterm_at(), resume_wait_.ends_at()) : Instant::never();
}

Duration NodeLeases::grace(Instant now) const {
  return std::max(Duration{}, worker_lease_.deadline() - now);
}

bool NodeLeases::await_answer(Instant now, Instant due) {
  if (!exist()) return false;
  if (now >= worker_lease_.sigterm_at()) resume_wait_.begin_if_late(now, due);
  return resume_wait_.is_open(now);
}

}  // namespace cpprun::agent
