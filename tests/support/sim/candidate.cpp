#include "tests/support/sim/candidate.hpp"

#include <utility>

namespace cpprun::sim {

Candidate::Candidate(SimContext& context, HostId host, HostClock clock, Election::Options options,
                     Callbacks callbacks)
    : context_(context),
      host_(host),
      clock_(clock),
      leader_key_(control::leader_key(options.run_id)),
      self_(options.self),
      callbacks_(std::move(callbacks)),
      core_(std::move(options)),
      alarm_(context.event_queue, [this] {
        if (!is_frozen_) on_timer();
      }) {}

void Candidate::start() {
  run_core([this](Instant now, election::Effects& e) { core_.start(now, e); });
}

void Candidate::run_core(const std::function<void(Instant, election::Effects&)>& call) {
  if (!is_alive_) return;
  election::Effects effects;
  call(local_now(), effects);
  for (const election::Effect& effect : effects) {
    std::visit([this](const auto& e) { carry_out(e); }, effect);
  }
  arm_timer();
}

void Candidate::look_at(bool is_led, bool is_willing) {
  core_.set_candidate(is_willing);
  run_core([&](Instant now, election::Effects& e) { core_.set_has_leader(now, is_led, e); });
}

void Candidate::write(const control::PersistedJobState& facts) {
  run_core([&](Instant now, election::Effects& e) { core_.write(now, facts, e); });
}

void Candidate::leave(bool is_idle) {
  run_core([&](Instant now, election::Effects& e) { core_.leave(now, is_idle, e); });
}

void Candidate::carry_out(const election::SendRequest& ask) {
  context_.etcd->ask(host_, ask, [this, id = ask.id](const election::Response& response) {
    callbacks_.when_awake([this, id, response] {
      run_core([&](Instant now, election::Effects& e) { core_.on_response(now, id, response, e); });
    });
  });
}

void Candidate::carry_out(const election::Elected& lead) {
  judge(lead.until);
  callbacks_.lead(lead);
}

void Candidate::carry_out(const election::ExtendLease& extend) {
  judge(extend.until);
  callbacks_.extend(extend.until);
}

void Candidate::judge(Instant until) const {
  context_.etcd->on_leader_lease(leader_key_, self_, clock_.truth(until));
}

void Candidate::arm_timer() {
  if (is_alive_) alarm_.set(clock_.truth(core_.next_deadline()));
}

void Candidate::on_timer() {
  if (is_alive_ && local_now() >= core_.next_deadline()) {
    run_core([this](Instant now, election::Effects& e) { core_.on_time(now, e); });
    context_.checks.require(!is_alive_ || core_.next_deadline() > local_now(),
                            "an election's deadline stays in the past");
  }
  arm_timer();
}

}  // namespace cpprun::sim
