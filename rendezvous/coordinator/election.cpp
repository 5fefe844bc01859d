#include "rendezvous/coordinator/election.hpp"

#include <algorithm>
#include <utility>

#include "common/check.hpp"
#include "common/limits/election.hpp"
#include "rendezvous/protocol/worker_lease_duration.hpp"

namespace cpprun {

using namespace election;

namespace {

int64_t whole_seconds(Duration lease) {
  constexpr Duration kAlmost = std::chrono::seconds(1) - Duration(1);
  return std::chrono::duration_cast<std::chrono::seconds>(lease + kAlmost).count();
}

}  // namespace

Election::Election(Options options) : options_(std::move(options)) {}

// ---------------------------------------------------------------- asking

// Several requests must fit into the time between the end of the worker leases and that of the
// lease.
Duration Election::response_timeout() const {
  return std::min(limits::kEtcdResponseTimeout, options_.lease / 5);
}

uint64_t Election::send(Request what, Effects& effects) {
  effects.push_back(SendRequest{++last_request_, std::move(what), response_timeout()});
  return last_request_;
}

void Election::ask(Instant now, State state, Request what, Effects& effects) {
  state_ = state;
  sent_at_ = now;
  poll_at_ = Instant::never();
  awaited_request_ = send(std::move(what), effects);
}

void Election::poll_leader(Instant now, Effects& effects) {
  ask(now, State::Polling,
      Read{control::leader_key(options_.run_id), control::job_state_key(options_.run_id)}, effects);
}

// An agent with a coordinator need not poll.
void Election::back_off(Instant now, Duration pause) {
  state_ = State::BackingOff;
  awaited_request_ = 0;
  poll_at_ = has_leader_ ? Instant::never() : now + pause;
}

void Election::report_trouble(const std::string& trouble, Effects& effects) const {
  effects.push_back(Trouble{"etcd: " + trouble});
}

void Election::start(Instant now, Effects& effects) { poll_leader(now, effects); }

void Election::set_has_leader(Instant now, bool is_led, Effects& effects) {
  if (std::exchange(has_leader_, is_led) == is_led || state_ != State::BackingOff) return;
  poll_at_ = Instant::never();
  if (!is_led) poll_leader(now, effects);
}

// ---------------------------------------------------------------- becoming the leader

void Election::on_response(Instant now, uint64_t id, const Response& response, Effects& effects) {
  if (state_ == State::Leading) {
    if (auto keep = renewals_.extract(id))
      return on_lease_renewed(now, keep.mapped(), response, effects);
    if (id == write_id_) return on_write_response(now, response, effects);
    return;  // of an earlier state
  }
  if (id != awaited_request_ || state_ == State::Ended) return;
  awaited_request_ = 0;
  if (state_ == State::Leaving) {
    state_ = State::Ended;
    effects.emplace_back(Resigned{});
  } else if (const auto* granted = std::get_if<Granted>(&response)) {
    on_granted(now, *granted, effects);
  } else if (const auto* seen = std::get_if<ReadResult>(&response)) {
    on_read(now, *seen, effects);
  } else if (const auto* refused = std::get_if<Refused>(&response)) {
    on_refused(now, refused->why, effects);
  } else {
    if (const auto* failed = std::get_if<Failed>(&response)) report_trouble(failed->why, effects);
    back_off(now,
             limits::kLeaderPollInterval);  // polling shows whether the request was carried out
  }
}

void Election::on_refused(Instant now, const std::string& why, Effects& effects) {
  report_trouble(why, effects);
  lease_.reset();
  back_off(now, limits::kElectionBackOff);
}

void Election::on_granted(Instant now, const Granted& granted, Effects& effects) {
  if (state_ != State::Granting) return back_off(now, limits::kLeaderPollInterval);
  if (granted.ttl_s < whole_seconds(options_.lease)) {
    return on_refused(now, "it gives a shorter lease than it was asked for", effects);
  }
  lease_ = Lease{granted.lease, sent_at_};
  campaign(now, effects);
}

void Election::campaign(Instant now, Effects& effects) {
  ask(now, State::Campaigning,
      Campaign{control::leader_key(options_.run_id), control::encode_leader(options_.self),
               control::job_state_key(options_.run_id), lease_->id},
      effects);
}

void Election::on_read(Instant now, const ReadResult& seen, Effects& effects) {
  const bool is_won = state_ == State::Campaigning && seen.is_done;
  if (is_won) return lead(now, seen, seen.revision, effects);
  if (seen.leader) {
    // The response to the own campaign was lost, or came late.
    const bool is_ours = lease_ && seen.leader->lease == lease_->id;
    if (is_ours) return lead(now, seen, seen.leader->create_revision, effects);
    return follow(now, *seen.leader, effects);
  }
  if (!is_candidate_) return back_off(now, limits::kLeaderPollInterval);
  // After a campaign without a response the same lease is used again: the own key is known by it.
  if (lease_ && now < until()) return campaign(now, effects);
  lease_.reset();
  ask(now, State::Granting, Grant{whole_seconds(options_.lease)}, effects);
}

void Election::follow(Instant now, const KeyValue& key, Effects& effects) {
  back_off(now, limits::kLeaderPollInterval);
  if (followed_revision_ == key.create_revision) return;
  Result<control::Leader> leader = control::decode_leader(key.value);
  if (!leader) {
    return report_trouble("the leader can't be read from " + control::leader_key(options_.run_id) +
                              ": " + leader.error().text,
                          effects);
  }
  // An own key of an earlier leadership: it ends with its lease.
  if (leader->node.incarnation == options_.self.node.incarnation) return;
  followed_revision_ = key.create_revision;
  effects.push_back(FollowLeader{std::move(*leader), Term(key.create_revision)});
}

// A job with an unreadable state is not led: its new coordinator would contradict the former one.
void Election::lead(Instant now, const ReadResult& seen, int64_t create_revision,
                    Effects& effects) {
  std::optional<control::PersistedJobState> facts;
  if (seen.facts) {
    Result<control::PersistedJobState> known = control::decode_job_state(seen.facts->value);
    if (!known) {
      return on_refused(now,
                        "what it knows of the job can't be read from " +
                            control::job_state_key(options_.run_id) + ": " + known.error().text +
                            "; delete that key, or take another --rdzv-id",
                        effects);
    }
    facts = std::move(*known);
  }
  state_ = State::Leading;
  create_revision_ = create_revision;
  job_state_revision_ = seen.facts ? seen.facts->mod_revision : 0;
  renewals_.clear();
  write_id_ = awaited_request_ = 0;
  writing_.reset();
  is_written_ = false;
  write_at_ = poll_at_ = Instant::never();
  renew_at_ = now;
  Term term(create_revision);
  if (facts) term = std::max(term, Term(facts->term.value + 1));
  effects.push_back(Elected{term, std::move(facts), until()});
  renew_lease(now, effects);
}

// ---------------------------------------------------------------- leading

Instant Election::until() const { return lease_->renewed_at + worker_lease_of(options_.lease); }

void Election::renew_lease(Instant now, Effects& effects) {
  renew_at_ = now + std::min(limits::kLeaseRenewInterval, options_.lease / 20);
  renewals_[send(KeepAlive{lease_->id}, effects)] = now;
}

void Election::on_lease_renewed(Instant now, Instant sent_at, const Response& response,
                                Effects& effects) {
  const auto* kept = std::get_if<KeepAliveResult>(&response);
  if (kept == nullptr) return;  // other renewals are under way
  if (kept->ttl_s <= 0) return lose(now, "the lease has ended", effects);
  if (sent_at < lease_->renewed_at) return;  // a newer renewal was faster
  lease_->renewed_at = sent_at;
  effects.push_back(ExtendLease{until()});
  release(now, effects);
}

void Election::write(Instant, const control::PersistedJobState& facts, Effects& effects) {
  CPPRUN_CHECK(state_ == State::Leading && !writing_);
  writing_ = control::encode_job_state(facts);
  is_written_ = false;
  send_write(effects);
}

void Election::send_write(Effects& effects) {
  write_at_ = Instant::never();
  write_id_ =
      send(Write{control::leader_key(options_.run_id), control::job_state_key(options_.run_id),
                 *writing_, create_revision_, job_state_revision_},
           effects);
}

void Election::on_write_response(Instant now, const Response& response, Effects& effects) {
  write_id_ = 0;
  if (const auto* refused = std::get_if<Refused>(&response)) {
    return lose(now, refused->why, effects);  // etcd would refuse again
  }
  const auto* seen = std::get_if<ReadResult>(&response);
  if (seen == nullptr) {
    write_at_ = now + response_timeout() / 4;
    return;
  }
  const bool is_ours =
      seen->is_done || (seen->leader && seen->leader->create_revision == create_revision_);
  if (!is_ours) return lose(now, "another coordinator leads the job", effects);
  // A request whose response was lost may have been carried out, now or long ago.
  const bool is_there = seen->is_done || (seen->facts && seen->facts->value == *writing_);
  job_state_revision_ = seen->is_done ? seen->revision
                        : seen->facts ? seen->facts->mod_revision
                                      : 0;
  if (!is_there) return send_write(effects);
  is_written_ = true;
  release(now, effects);
}

// Checks the lease again: if this process was suspended, another leader may hold the key and may
// have read the same state.
void Election::release(Instant now, Effects& effects) {
  if (!is_written_ || now >= until()) return;
  is_written_ = false;
  writing_.reset();
  effects.emplace_back(Persisted{});
}

// The key may still be there. This coordinator has to stop before it is gone.
void Election::lose(Instant now, const std::string& why, Effects& effects) {
  lease_.reset();
  renewals_.clear();
  write_id_ = 0;
  writing_.reset();
  is_written_ = false;
  renew_at_ = write_at_ = Instant::never();
  effects.push_back(LeadershipLost{why});
  has_leader_ = false;
  poll_leader(now, effects);
}

void Election::leave(Instant now, bool is_idle, Effects& effects) {
  if (state_ == State::Ended || state_ == State::Leaving) return;
  renew_at_ = write_at_ = poll_at_ = Instant::never();
  if (state_ == State::Leading && is_idle) {
    const int64_t lease = lease_->id;
    return ask(now, State::Leaving, Revoke{lease}, effects);
  }
  state_ = State::Ended;
  effects.emplace_back(Resigned{});
}

// ---------------------------------------------------------------- time

void Election::on_time(Instant now, Effects& effects) {
  if (state_ == State::Leading && now >= lease_->renewed_at + options_.lease) {
    return lose(now, "nothing was heard from it for a lease", effects);
  }
  if (now >= renew_at_) renew_lease(now, effects);
  if (now >= write_at_) send_write(effects);
  if (now >= poll_at_) poll_leader(now, effects);
}

Instant Election::next_deadline() const {
  if (state_ == State::Ended) return Instant::never();
  const Instant end =
      state_ == State::Leading ? lease_->renewed_at + options_.lease : Instant::never();
  return std::min({end, renew_at_, write_at_, poll_at_});
}

}  // namespace cpprun
