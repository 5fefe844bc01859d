// Node: the agent's shell.
#include "tests/support/sim/node.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "common/limits/rendezvous.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "tests/support/sim/node_keys.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

const char* how_text(agent::Finish::How how) {
  switch (how) {
    case agent::Finish::How::Success:
      return "success";
    case agent::Finish::How::Failure:
      return "failure";
    case agent::Finish::How::Error:
      return "an error";
    case agent::Finish::How::Signal:
      return "a signal";
    case agent::Finish::How::Unusable:
      return "its node unusable";
    default:
      return "nothing lost";
  }
}

}  // namespace

Node::Node(Surroundings& around, NodeSpec spec)
    : around_(around),
      spec_(std::move(spec)),
      dice_(around.dice.child(spec_.agent.hello.node.incarnation.value + 1000)),
      program_(around.network.add(spec_.host, *this)),
      core_(spec_.agent),
      client_({Endpoint{"head", kJobPort}, spec_.is_own, limits::kSayWaiting, limits::kReconnectMax,
               around.etcd != nullptr}),
      alarm_(around.agenda, [this] {
        if (!is_frozen_) on_timer();
      }) {
  if (spec_.has_control_port && !spec_.is_own) {
    CoordinatorSpec lead;
    lead.host = spec_.host;
    lead.port = 30'000 + static_cast<int>(spec_.agent.hello.node.incarnation.value);
    lead.is_asleep = true;
    lead.clock = spec_.clock;
    lead.label = spec_.label;
    own_lead_ = std::make_unique<CoordinatorProcess>(around, lead);
    lead_ = own_lead_.get();
    core_.on_control_port(lead.port);
  }
  if (spec_.agent.facts.has_snapshot_dir) core_.on_serving(4711);
  if (around.etcd != nullptr) make_candidate();
}

void Node::start() {
  tell_client([this](Instant, ClientCore::Effects& e) { client_.start(e); });
  tell_core([this](Instant now, agent::Effects& e) { core_.start(now, e); });
  if (candidate_) candidate_->start();
}

// ---------------------------------------------------------------- calls and effects

void Node::tell_core(const Call& call) {
  if (!is_running()) return;
  agent::Effects effects;
  call(local_now(), effects);
  for (agent::Effect& effect : effects) queue_.push_back(std::move(effect));
  if (std::exchange(is_carrying_out_, true)) return;
  while (!queue_.empty()) {
    agent::Effect effect = std::move(queue_.front());
    queue_.pop_front();
    std::visit([this](const auto& e) { carry_out(e); }, effect);
  }
  is_carrying_out_ = false;
  arm_timer();
  const bool is_candidate = candidate_ != nullptr && is_running();
  if (is_candidate) candidate_->look_at(core_.is_led(local_now()), core_.would_lead());
}

void Node::tell_client(const std::function<void(Instant, ClientCore::Effects&)>& call) {
  if (!is_running()) return;
  ClientCore::Effects effects;
  call(local_now(), effects);
  for (const ClientCore::Effect& effect : effects) {
    std::visit([this](const auto& e) { carry_out(e); }, effect);
  }
  arm_timer();
}

// A frozen process learns of it when it runs again.
void Node::when_awake(std::function<void()> event) {
  if (is_frozen_) {
    mailbox_.push_back(std::move(event));
  } else {
    event();
  }
}

void Node::carry_out(const agent::Tell& effect) {
  if (!connection_ || is_closing_) return;
  Bytes frame;
  control::append_frame(frame, control::encode(effect.message));
  around_.network.send(program_, *connection_, std::move(frame));
  if (after_message_) around_.agenda.in(1us, std::exchange(after_message_, nullptr));
}

void Node::strike(int64_t fault, int64_t times) {
  control::Strike asked;
  asked.fault = fault;
  asked.times = times;
  carry_out(agent::Tell{asked});
}

void Node::carry_out(const agent::Disconnect& effect) {
  if (std::exchange(is_closing_, true)) return;
  client_.close();
  hang_up(effect.is_reset ? Ending::Reset : Ending::Fin);
}

void Node::carry_out(const agent::Reconnect& effect) {
  around_.agenda.in(Duration{}, [this, current = connection_, effect] {
    when_awake([this, current, effect] {
      if (!current || connection_ != current || is_closing_) return;
      tell_client([&](Instant now, ClientCore::Effects& e) {
        client_.on_broken(now, e, effect.is_elsewhere);
      });
    });
  });
}

void Node::carry_out(const agent::Routes& effect) {
  client_.set_routes(effect.places, effect.is_sure, false);
}

void Node::carry_out(const agent::TakeOver& effect) {
  around_.checks.on_take_over(id().incarnation, epoch_);
  CoordinatorOptions options;
  options.host = spec_.label;
  options.epoch = effect.epoch;
  options.embedded = id().incarnation;
  options.node_id_of = id_of_key;
  options.heir_of = spec_.agent.hello.run_id;
  options.make_secret = [this] { return "secret of " + spec_.label; };
  lead_->wake(options);
  client_.set_routes({Endpoint{address_of(spec_.host), static_cast<uint16_t>(lead_->spec().port)}},
                     true, true);
}

void Node::carry_out(const agent::WantPort&) {
  int64_t port = 40'000 + ++ports_;
  tell_core([this, port](Instant now, agent::Effects& e) { core_.on_port(now, port, e); });
}

void Node::carry_out(const agent::Fence& effect) {
  fence_ = effect.deadline;
  arm_guardian();
}

void Node::carry_out(const agent::Note& effect) {
  if (effect.level == agent::Note::Level::Warning) trace("says: " + effect.text);
}

void Node::carry_out(const agent::Finish& effect) {
  finish_ = effect;
  trace(std::string("ends with ") + how_text(effect.how) +
        (effect.text.empty() ? "" : ": " + effect.text));
  around_.trace.fold(id().incarnation.value * 16 + static_cast<uint64_t>(effect.how));
  around_.checks.on_finish(epoch_, has_running_workers(), effect);
  around_.checks.require(
      effect.how != agent::Finish::How::Unusable || (live_workers() > 0 && !has_running_workers()),
      "stuck: " + label() + " is unusable, and SIGKILL was not in vain");
  client_.close();
  hang_up(Ending::Reset);  // unless a farewell is already on its way
  around_.network.end(program_);
  kill_workers(limits::kDeathGrace - 10ms);
  if (lead_ == nullptr) return;
  if (candidate_) return leave_election(effect);
  // Of a process that a signal has asked to leave nothing stays, but for a while after a save.
  const Duration stays = effect.stays_until - local_now();
  if (!lead_->is_awake() || (effect.signal != 0 && stays <= Duration{})) return lead_->kill(false);
  lead_->end_when_idle();
  if (effect.signal != 0) around_.agenda.in(stays, [this] { lead_->kill(false); });
}

// ---------------------------------------------------------------- the line to the coordinator

void Node::carry_out(const ClientCore::Dial&) {
  dialled_ = client_.target();
  const bool is_head = dialled_.host == "head";
  const HostId to = is_head ? around_.coordinator_host
                            : std::atoi(dialled_.host.substr(dialled_.host.rfind('.') + 1).c_str());
  dialling_ = around_.network.dial(program_, to, dialled_.port);
}
void Node::carry_out(const ClientCore::HangUp&) {
  hang_up(Ending::Reset);
}
void Node::carry_out(const ClientCore::Broken&) {
  trace("loses its connection");
  tell_core([this](Instant now, agent::Effects& e) { core_.on_disconnected(now, e); });
}
void Node::carry_out(const ClientCore::Probe&) {
  around_.agenda.in(1ms, [this] {
    when_awake([this] {
      tell_client(
          [this](Instant now, ClientCore::Effects& e) { client_.on_probed(now, false, e); });
    });
  });
}
void Node::carry_out(const ClientCore::Refused& effect) {
  tell_core([&](Instant now, agent::Effects& e) { core_.on_refused(now, effect.places, e); });
}
void Node::carry_out(const ClientCore::Trouble& trouble) {
  trace("says: " + trouble.text);
}

void Node::hang_up(Ending how) {
  dialling_.reset();
  if (!connection_) return;
  around_.network.close(program_, *std::exchange(connection_, std::nullopt), how);
}

void Node::on_dialled(ConnectionId connection, bool is_connected, const std::string& why) {
  when_awake([this, connection, is_connected, why] {
    if (dialling_ != connection || !is_running() || is_closing_) return;
    dialling_.reset();
    if (!is_connected) {
      std::vector<Endpoint> refused;
      if (why == "Connection refused") refused.push_back(dialled_);
      tell_client([&](Instant now, ClientCore::Effects& e) {
        client_.on_dial_failed(now, why, refused, e);
      });
      return;
    }
    connection_ = connection;
    around_.network.send(program_, connection,
                         Bytes(std::begin(control::kMagic), std::end(control::kMagic)));
    client_.on_connected(local_now());
    tell_core([this](Instant now, agent::Effects& e) {
      core_.on_connected(now, {address_of(spec_.host)}, dialled_, e);
    });
  });
}

void Node::on_bytes(ConnectionId connection, std::span<const uint8_t> bytes) {
  if (connection_ != connection || !is_running()) return;
  client_.on_bytes(bytes);
  take_messages(connection);
}

void Node::take_messages(ConnectionId connection) {
  while (connection_ == connection && is_running()) {
    std::optional<control::CoordinatorMessage> message;
    tell_client(
        [&](Instant now, ClientCore::Effects& e) { message = client_.next_message(now, e); });
    if (!message) return;
    around_.trace.message(around_.agenda.now(), spec_.label, *message);
    judge_move(connection, *message);
    std::optional<Endpoint> place;
    if (must_stay(*message)) place = client_.target();
    look_at_message(*message);
    tell_core([&](Instant now, agent::Effects& e) { core_.on_message(now, *message, e); });
    const bool has_followed = place && connection_ == connection && client_.target() != *place;
    if (has_followed) {
      around_.checks.require(false, "R17: " + label() + " follows to one of an older epoch");
    }
  }
}

void Node::look_at_message(const control::CoordinatorMessage& message) {
  if (const auto* welcome = std::get_if<control::Welcome>(&message)) {
    epoch_ = std::max(epoch_, welcome->epoch);
  }
  if (std::holds_alternative<control::Moved>(message) && is_blank()) epoch_ = Epoch();
  if (std::holds_alternative<control::Decided>(message)) knows_outcome_ = true;
  const auto* world = std::get_if<control::World>(&message);
  if (world != nullptr && world->epoch >= epoch_) told_ = RoundName{world->epoch, world->round};
}

void Node::on_ended(ConnectionId connection, Ending) {
  if (connection_ != connection) return;
  tell_client([this](Instant now, ClientCore::Effects& e) { client_.on_broken(now, e); });
}

// ---------------------------------------------------------------- its timer

void Node::arm_timer() {
  if (!is_running()) return;
  alarm_.set(spec_.clock.truth(std::min(core_.next_deadline(), client_.next_deadline())));
}

void Node::on_timer() {
  if (local_now() >= client_.next_deadline()) {
    tell_client([this](Instant now, ClientCore::Effects& e) { client_.on_time(now, e); });
  }
  if (is_running() && local_now() >= core_.next_deadline()) {
    tell_core([this](Instant now, agent::Effects& e) { core_.on_time(now, e); });
    const bool has_looked = !is_running() || core_.next_deadline() > local_now();
    around_.checks.require(has_looked, "limits: an agent's deadline stays in the past");
    if (!has_looked) return;  // else it would look for ever
  }
  arm_timer();
}

}  // namespace cpprun::sim
