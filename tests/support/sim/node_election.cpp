// Node: its part in the election of a coordinator through etcd (R18).
#include <algorithm>
#include <csignal>
#include <utility>

#include "common/limits/election.hpp"
#include "tests/support/sim/node.hpp"
#include "tests/support/sim/node_keys.hpp"

namespace cpprun::sim {

void Node::make_candidate() {
  Election::Options options;
  options.run_id = spec_.agent.hello.run_id;
  options.self = control::Leader{id(), address_of(spec_.host), lead_->spec().port};
  options.lease = spec_.agent.facts.terms.lease;
  Candidate::Doors doors;
  doors.lead = [this](const election::Lead& message) { lead(message); };
  doors.prolong = [this](Instant until) { lead_->lead_until(until); };
  doors.written = [this] { lead_->on_written(); };
  doors.lost = [this](const std::string& why) {
    trace("leads the job no more: " + why);
    on_deposed();
  };
  doors.follow = [this](const control::Leader& leader) {
    const Endpoint place{leader.address, static_cast<uint16_t>(leader.port)};
    tell_core([&](Instant, agent::Effects& e) { core_.on_led_from(place, e); });
  };
  doors.when_awake = [this](std::function<void()> event) { when_awake(std::move(event)); };
  candidate_ =
      std::make_unique<Candidate>(around_, spec_.host, spec_.clock, options, std::move(doors));
  lead_->when_facts([this](const control::JobFacts& facts) { candidate_->write(facts); });
  lead_->when_ended([this] { candidate_->leave(lead_->is_idle()); });
}

void Node::lead(const election::Lead& message) {
  CoordinatorOptions options;
  options.host = spec_.label;
  options.epoch = message.epoch;
  options.embedded = id().incarnation;
  options.node_id_of = id_of_key;
  options.mandate = Mandate{spec_.agent.hello.run_id, message.facts, message.until};
  options.make_secret = [this] { return "secret of " + spec_.label; };
  lead_->wake(options);
  const Endpoint own{address_of(spec_.host), static_cast<uint16_t>(lead_->spec().port)};
  tell_core([&](Instant, agent::Effects& e) { core_.on_led_from(own, e); });
}

void Node::on_deposed() {
  lead_->depose();
  if (!finish_) return;
  lead_->kill(false);
  candidate_->leave(false);
}

// Our agent has ended. Others may still need the coordinator in this process. Who was asked to stop
// does not stay for long.
void Node::leave_election(const agent::Finish& finish) {
  const bool is_signal = finish.signal != 0;
  const auto go = [this] {
    lead_->kill(false);
    candidate_->leave(false);
  };
  if (!candidate_->is_leading() || (is_signal && finish.signal != SIGTERM)) return go();
  lead_->end_when_idle();
  const Duration stays = finish.stays_until - local_now();
  if (is_signal) around_.agenda.in(std::max(stays, limits::kLeaderGoes), go);
}

}  // namespace cpprun::sim
