#include "tests/support/sim/etcd.hpp"

#include <algorithm>
#include <utility>

namespace cpprun::sim {

using namespace std::chrono_literals;
using election::Response;

void Etcd::ask(HostId from, const election::SendRequest& ask, Reply reply) {
  const uint64_t number = ++last_request_;
  pending_.emplace(number, std::move(reply));
  Duration way = network_.latency(from, kEtcdHost);
  if (prng_.chance(options_.lingers)) way += prng_.up_to(options_.lingers_max);
  event_queue_.in(way, [this, from, number, what = ask.what] { arrive(from, number, what); });
  event_queue_.in(ask.most,
                  [this, number] { response(number, election::Failed{"no answer in time"}); });
}

void Etcd::arrive(HostId from, uint64_t number, const election::Request& request) {
  if (!is_up_ || !network_.passes(from, kEtcdHost)) return;
  const Response made = apply(request);
  if (prng_.chance(options_.loses_answers)) return;
  event_queue_.in(network_.latency(kEtcdHost, from), [this, from, number, made] {
    if (network_.passes(kEtcdHost, from)) response(number, made);
  });
}

void Etcd::response(uint64_t number, const Response& response) {
  auto it = pending_.find(number);
  if (it == pending_.end()) return;
  Reply reply = std::move(it->second);
  pending_.erase(it);
  reply(response);
}

Response Etcd::apply(const election::Request& request) {
  trace_.fold(static_cast<uint64_t>(revision_) * 8 + request.index());
  return std::visit([this](const auto& what) { return carry_out(what); }, request);
}

std::optional<election::KeyValue> Etcd::get(const std::string& key) const {
  auto it = keys_.find(key);
  if (it == keys_.end()) return std::nullopt;
  return it->second;
}

election::ReadResult Etcd::poll_leader(bool is_done, const std::string& leader,
                                       const std::string& facts) const {
  return election::ReadResult{is_done, revision_, get(leader), get(facts)};
}

void Etcd::put(const std::string& key, const std::string& value, int64_t lease) {
  auto [it, is_new] = keys_.try_emplace(key);
  ++revision_;
  it->second.value = value;
  it->second.mod_revision = revision_;
  if (is_new) it->second.create_revision = revision_;
  it->second.lease = lease;
  if (lease != 0) leases_.at(lease).keys.insert(key);
}

Response Etcd::carry_out(const election::Campaign& campaign) {
  if (keys_.contains(campaign.leader_key)) {
    return poll_leader(false, campaign.leader_key, campaign.job_state_key);
  }
  if (!leases_.contains(campaign.lease)) return election::Refused{"requested lease not found"};
  put(campaign.leader_key, campaign.value, campaign.lease);
  Result<control::Leader> leader = control::decode_leader(campaign.value);
  trace((leader ? leader->node.name : "no agent") + " leads in term " + std::to_string(revision_));
  return poll_leader(true, campaign.leader_key, campaign.job_state_key);
}

Response Etcd::carry_out(const election::Write& write) {
  const auto leader = get(write.leader_key);
  const auto facts = get(write.job_state_key);
  const bool is_allowed = leader && leader->create_revision == write.create_revision &&
                          (facts ? facts->mod_revision : 0) == write.mod_revision;
  if (is_allowed) put(write.job_state_key, write.value, 0);
  Result<control::PersistedJobState> state = control::decode_job_state(write.value);
  if (is_allowed) watch_.on_job_state(write.job_state_key, state);
  const std::string what =
      !state ? "nonsense"
             : "round " + std::to_string(state->round.value) + (state->decided ? ", decided" : "");
  trace(is_allowed ? "keeps: " + what : "refuses to keep: " + what);
  return poll_leader(is_allowed, write.leader_key, write.job_state_key);
}

Response Etcd::carry_out(const election::Read& read) {
  return poll_leader(true, read.leader_key, read.job_state_key);
}

Response Etcd::carry_out(const election::Grant& grant) {
  const int64_t id = ++leases_made_;
  Lease& lease = leases_[id];
  lease.ttl_s = std::max(grant.ttl_s, options_.ttl_least_s);
  lease.ends = local_now() + std::chrono::seconds(lease.ttl_s);
  look_later(id);
  return election::Granted{id, lease.ttl_s};
}

Response Etcd::carry_out(const election::KeepAlive& keep) {
  auto it = leases_.find(keep.lease);
  if (it == leases_.end() || it->second.ends <= local_now()) return election::KeepAliveResult{0};
  it->second.ends = local_now() + std::chrono::seconds(it->second.ttl_s);
  return election::KeepAliveResult{it->second.ttl_s};
}

Response Etcd::carry_out(const election::Revoke& revoke) {
  if (!leases_.contains(revoke.lease)) return election::Refused{"requested lease not found"};
  if (!leases_.at(revoke.lease).keys.empty()) watch_.on_given_back();
  end(revoke.lease, "was given back");
  return election::Revoked{};
}

// It checks for expired leases now and then.
void Etcd::look_later(int64_t id) {
  const Instant ends = std::max(clock_.truth(leases_.at(id).ends), event_queue_.now());
  const Instant when = ends + 1ms + prng_.up_to(kLooksEach);
  event_queue_.at(when, [this, id] {
    auto it = leases_.find(id);
    if (it == leases_.end()) return;
    if (!is_up_ || it->second.ends > local_now()) return look_later(id);
    end(id, "has ended");
  });
}

void Etcd::end(int64_t id, const std::string& why) {
  const Lease lease = leases_.extract(id).mapped();
  for (const std::string& key : lease.keys) {
    if (keys_.erase(key) == 0) continue;
    ++revision_;
    trace("the leader's lease " + why);
  }
}

void Etcd::on_leader_lease(const std::string& leader_key, const control::Leader& leader,
                           Instant until) {
  const auto key = get(leader_key);
  const bool is_its_own = key && key->value == control::encode_leader(leader);
  const Instant now = event_queue_.now();
  watch_.on_leader_lease(leader, now, until,
                         is_its_own ? clock_.truth(leases_.at(key->lease).ends) : now);
}

void Etcd::stop() {
  if (!std::exchange(is_up_, false)) return;
  trace("is down");
}

void Etcd::start() {
  if (std::exchange(is_up_, true)) return;
  trace("is up again");
  for (auto& [id, lease] : leases_) {
    lease.ends = local_now() + std::chrono::seconds(lease.ttl_s);
  }
}

}  // namespace cpprun::sim
