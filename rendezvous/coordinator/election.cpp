#include "rendezvous/coordinator/election.hpp"

#include <algorithm>
#include <utility>

#include "common/check.hpp"
#include "common/limits/election.hpp"
#include "rendezvous/coordinator/times.hpp"

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

// Several requests must fit into what a lease lasts longer than a grant.
Duration Election::patience() const {
  return std::min(limits::kAnswerMax, options_.lease / 5);
}

uint64_t Election::send(Question what, Effects& effects) {
  effects.push_back(Ask{++asked_, std::move(what), patience()});
  return asked_;
}

void Election::ask(Instant now, State state, Question what, Effects& effects) {
  state_ = state;
  sent_at_ = now;
  look_at_ = Instant::never();
  awaited_ = send(std::move(what), effects);
}

void Election::look(Instant now, Effects& effects) {
  ask(now, State::Looking,
      Read{control::leader_key(options_.run_id), control::facts_key(options_.run_id)}, effects);
}

// Who is led need not look again.
void Election::rest(Instant now, Duration pause) {
  state_ = State::Resting;
  awaited_ = 0;
  look_at_ = is_led_ ? Instant::never() : now + pause;
}

void Election::say(const std::string& trouble, Effects& effects) const {
  effects.push_back(Trouble{"etcd: " + trouble});
}

void Election::start(Instant now, Effects& effects) {
  look(now, effects);
}

void Election::set_led(Instant now, bool is_led, Effects& effects) {
  if (std::exchange(is_led_, is_led) == is_led || state_ != State::Resting) return;
  look_at_ = Instant::never();
  if (!is_led) look(now, effects);
}

// ---------------------------------------------------------------- becoming the leader

void Election::on_answer(Instant now, uint64_t id, const Answer& answer, Effects& effects) {
  if (state_ == State::Leading) {
    if (auto keep = keeps_.extract(id)) return on_kept(now, keep.mapped(), answer, effects);
    if (id == write_id_) return on_write_answer(now, answer, effects);
    return;  // of an earlier time
  }
  if (id != awaited_ || state_ == State::Ended) return;
  awaited_ = 0;
  if (state_ == State::Leaving) {
    state_ = State::Ended;
    effects.emplace_back(Left{});
  } else if (const auto* granted = std::get_if<Granted>(&answer)) {
    on_granted(now, *granted, effects);
  } else if (const auto* seen = std::get_if<Seen>(&answer)) {
    on_seen(now, *seen, effects);
  } else if (const auto* refused = std::get_if<Refused>(&answer)) {
    on_refused(now, refused->why, effects);
  } else {
    if (const auto* failed = std::get_if<Failed>(&answer)) say(failed->why, effects);
    rest(now, limits::kLookAgain);  // what was asked may be done; looking will show it
  }
}

void Election::on_refused(Instant now, const std::string& why, Effects& effects) {
  say(why, effects);
  lease_.reset();
  rest(now, limits::kElectionPause);
}

void Election::on_granted(Instant now, const Granted& granted, Effects& effects) {
  if (state_ != State::Granting) return rest(now, limits::kLookAgain);
  if (granted.ttl_s < whole_seconds(options_.lease)) {
    return on_refused(now, "it grants a shorter lease than it was asked for", effects);
  }
  lease_ = Lease{granted.lease, sent_at_};
  campaign(now, effects);
}

void Election::campaign(Instant now, Effects& effects) {
  ask(now, State::Campaigning,
      Campaign{control::leader_key(options_.run_id), control::encode_leader(options_.self),
               control::facts_key(options_.run_id), lease_->id},
      effects);
}

void Election::on_seen(Instant now, const Seen& seen, Effects& effects) {
  const bool is_won = state_ == State::Campaigning && seen.is_done;
  if (is_won) return lead(now, seen, seen.revision, effects);
  if (seen.leader) {
    // The answer to our campaign was lost, or it came late.
    const bool is_ours = lease_ && seen.leader->lease == lease_->id;
    if (is_ours) return lead(now, seen, seen.leader->create_revision, effects);
    return follow(now, *seen.leader, effects);
  }
  if (!is_willing_) return rest(now, limits::kLookAgain);
  // A lease that was granted for a campaign without an answer serves once more: so it is known
  // which key is ours.
  if (lease_ && now < until()) return campaign(now, effects);
  lease_.reset();
  ask(now, State::Granting, Grant{whole_seconds(options_.lease)}, effects);
}

void Election::follow(Instant now, const KeyValue& key, Effects& effects) {
  rest(now, limits::kLookAgain);
  if (followed_ == key.create_revision) return;
  Result<control::Leader> leader = control::decode_leader(key.value);
  if (!leader) {
    return say("who leads can't be read from " + control::leader_key(options_.run_id) + ": " +
                   leader.error().text,
               effects);
  }
  // An earlier key of ours, that we have given up: it ends with its lease.
  if (leader->node.incarnation == options_.self.node.incarnation) return;
  followed_ = key.create_revision;
  effects.push_back(Follow{std::move(*leader), Epoch(key.create_revision)});
}

// A job whose facts can't be read is led by nobody: who leads it would contradict what was told.
void Election::lead(Instant now, const Seen& seen, int64_t create_revision, Effects& effects) {
  std::optional<control::JobFacts> facts;
  if (seen.facts) {
    Result<control::JobFacts> known = control::decode_facts(seen.facts->value);
    if (!known) {
      return on_refused(now,
                        "what it knows of the job can't be read from " +
                            control::facts_key(options_.run_id) + ": " + known.error().text +
                            "; delete that key, or take another --rdzv-id",
                        effects);
    }
    facts = std::move(*known);
  }
  state_ = State::Leading;
  create_revision_ = create_revision;
  facts_revision_ = seen.facts ? seen.facts->mod_revision : 0;
  keeps_.clear();
  write_id_ = awaited_ = 0;
  writing_.reset();
  is_written_ = false;
  write_at_ = look_at_ = Instant::never();
  keep_at_ = now;
  Epoch epoch(create_revision);
  if (facts) epoch = std::max(epoch, Epoch(facts->epoch.value + 1));
  effects.push_back(Lead{epoch, std::move(facts), until()});
  keep_alive(now, effects);
}

// ---------------------------------------------------------------- leading

Instant Election::until() const {
  return lease_->kept_at + grant_of(options_.lease);
}

void Election::keep_alive(Instant now, Effects& effects) {
  keep_at_ = now + std::min(limits::kKeepEach, options_.lease / 20);
  keeps_[send(KeepAlive{lease_->id}, effects)] = now;
}

void Election::on_kept(Instant now, Instant sent_at, const Answer& answer, Effects& effects) {
  const auto* kept = std::get_if<Kept>(&answer);
  if (kept == nullptr) return;  // others are under way
  if (kept->ttl_s <= 0) return lose(now, "the lease has ended", effects);
  if (sent_at < lease_->kept_at) return;  // overtaken by a newer one
  lease_->kept_at = sent_at;
  effects.push_back(Prolong{until()});
  release(now, effects);
}

void Election::write(Instant, const control::JobFacts& facts, Effects& effects) {
  CPPRUN_CHECK(state_ == State::Leading && !writing_);
  writing_ = control::encode_facts(facts);
  is_written_ = false;
  send_write(effects);
}

void Election::send_write(Effects& effects) {
  write_at_ = Instant::never();
  write_id_ = send(Write{control::leader_key(options_.run_id), control::facts_key(options_.run_id),
                         *writing_, create_revision_, facts_revision_},
                   effects);
}

void Election::on_write_answer(Instant now, const Answer& answer, Effects& effects) {
  write_id_ = 0;
  if (const auto* refused = std::get_if<Refused>(&answer)) {
    return lose(now, refused->why, effects);  // it would refuse again
  }
  const auto* seen = std::get_if<Seen>(&answer);
  if (seen == nullptr) {
    write_at_ = now + patience() / 4;
    return;
  }
  const bool is_ours =
      seen->is_done || (seen->leader && seen->leader->create_revision == create_revision_);
  if (!is_ours) return lose(now, "somebody else leads the job", effects);
  // A request whose answer was lost may have been carried out, now or long ago.
  const bool is_there = seen->is_done || (seen->facts && seen->facts->value == *writing_);
  facts_revision_ = seen->is_done ? seen->revision : seen->facts ? seen->facts->mod_revision : 0;
  if (!is_there) return send_write(effects);
  is_written_ = true;
  release(now, effects);
}

// Who was frozen meanwhile may have been followed by another, who has read the same.
void Election::release(Instant now, Effects& effects) {
  if (!is_written_ || now >= until()) return;
  is_written_ = false;
  writing_.reset();
  effects.emplace_back(Written{});
}

// Our key may still be there. What matters is that we have stopped before it is gone.
void Election::lose(Instant now, const std::string& why, Effects& effects) {
  lease_.reset();
  keeps_.clear();
  write_id_ = 0;
  writing_.reset();
  is_written_ = false;
  keep_at_ = write_at_ = Instant::never();
  effects.push_back(Lost{why});
  is_led_ = false;
  look(now, effects);
}

void Election::leave(Instant now, bool is_idle, Effects& effects) {
  if (state_ == State::Ended || state_ == State::Leaving) return;
  keep_at_ = write_at_ = look_at_ = Instant::never();
  if (state_ == State::Leading && is_idle) {
    const int64_t lease = lease_->id;
    return ask(now, State::Leaving, Revoke{lease}, effects);
  }
  state_ = State::Ended;
  effects.emplace_back(Left{});
}

// ---------------------------------------------------------------- time

void Election::on_time(Instant now, Effects& effects) {
  if (state_ == State::Leading && now >= lease_->kept_at + options_.lease) {
    return lose(now, "nothing was heard from it for a lease", effects);
  }
  if (now >= keep_at_) keep_alive(now, effects);
  if (now >= write_at_) send_write(effects);
  if (now >= look_at_) look(now, effects);
}

Instant Election::next_deadline() const {
  if (state_ == State::Ended) return Instant::never();
  const Instant end =
      state_ == State::Leading ? lease_->kept_at + options_.lease : Instant::never();
  return std::min({end, keep_at_, write_at_, look_at_});
}

}  // namespace cpprun
