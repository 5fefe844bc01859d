#include "tests/support/sim/candidate.hpp"

#include <utility>

namespace cpprun::sim {

Candidate::Candidate(Surroundings& around, HostId host, HostClock clock, Election::Options options,
                     Doors doors)
    : around_(around),
      host_(host),
      clock_(clock),
      leader_key_(control::leader_key(options.run_id)),
      self_(options.self),
      doors_(std::move(doors)),
      core_(std::move(options)),
      alarm_(around.agenda, [this] {
        if (!is_frozen_) on_timer();
      }) {}

void Candidate::start() {
  tell_core([this](Instant now, election::Effects& e) { core_.start(now, e); });
}

void Candidate::tell_core(const std::function<void(Instant, election::Effects&)>& call) {
  if (!is_alive_) return;
  election::Effects effects;
  call(local_now(), effects);
  for (const election::Effect& effect : effects) {
    std::visit([this](const auto& e) { carry_out(e); }, effect);
  }
  arm_timer();
}

void Candidate::look_at(bool is_led, bool is_willing) {
  core_.set_willing(is_willing);
  tell_core([&](Instant now, election::Effects& e) { core_.set_led(now, is_led, e); });
}

void Candidate::write(const control::JobFacts& facts) {
  tell_core([&](Instant now, election::Effects& e) { core_.write(now, facts, e); });
}

void Candidate::leave(bool is_idle) {
  tell_core([&](Instant now, election::Effects& e) { core_.leave(now, is_idle, e); });
}

void Candidate::carry_out(const election::Ask& ask) {
  around_.etcd->ask(host_, ask, [this, id = ask.id](const election::Answer& answer) {
    doors_.when_awake([this, id, answer] {
      tell_core([&](Instant now, election::Effects& e) { core_.on_answer(now, id, answer, e); });
    });
  });
}

void Candidate::carry_out(const election::Lead& lead) {
  judge(lead.until);
  doors_.lead(lead);
}

void Candidate::carry_out(const election::Prolong& prolong) {
  judge(prolong.until);
  doors_.prolong(prolong.until);
}

void Candidate::judge(Instant until) const {
  around_.etcd->on_mandate(leader_key_, self_, clock_.truth(until));
}

void Candidate::arm_timer() {
  if (is_alive_) alarm_.set(clock_.truth(core_.next_deadline()));
}

void Candidate::on_timer() {
  if (is_alive_ && local_now() >= core_.next_deadline()) {
    tell_core([this](Instant now, election::Effects& e) { core_.on_time(now, e); });
    around_.checks.require(!is_alive_ || core_.next_deadline() > local_now(),
                           "an election's deadline stays in the past");
  }
  arm_timer();
}

}  // namespace cpprun::sim
