#include "tests/support/sim/coordinator_process.hpp"

#include <algorithm>
#include <utility>

#include "common/limits/rendezvous.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "tests/support/sim/etcd.hpp"

namespace cpprun::sim {

CoordinatorProcess::CoordinatorProcess(SimContext& context, CoordinatorSpec spec)
    : context_(context),
      spec_(std::move(spec)),
      prng_(context.prng.child(static_cast<uint64_t>(spec_.options.term.value) + 77)),
      program_(context.network.add(spec_.host, *this)),
      handovers_(context.checks),
      alarm_(context.event_queue, [this] {
        if (!is_frozen_) on_timer();
      }) {
  context_.network.listen(program_, spec_.port);
  if (spec_.is_asleep) {
    context_.network.set_reading(program_, false);
  } else {
    core_ = std::make_unique<Coordinator>(spec_.options);
  }
}

void CoordinatorProcess::wake(CoordinatorOptions options) {
  spec_.options = options;
  core_ = std::make_unique<Coordinator>(options);
  trace("leads the job from here");
  if (!options.leader_lease) start_leader_announcer();
  // The time to start a thread.
  context_.event_queue.in(std::chrono::milliseconds(1), [this] {
    if (!is_alive_ || is_frozen_ || !core_) return;
    context_.network.set_reading(program_, true);
    context_.network.deliver_unread(program_);
  });
}

void CoordinatorProcess::start_leader_announcer() {
  control::Hello hello;
  hello.run_id = spec_.options.standby_of;
  hello.node = NodeId{spec_.label, *spec_.options.embedded};
  leader_announcer_ = std::make_unique<LeaderAnnouncer>(context_, spec_.host, hello, [this] {
    const Job* led = job(spec_.options.standby_of);
    return control::AnnounceLeader{led == nullptr ? spec_.options.term : led->term(),
                                   address_of(spec_.host), spec_.port};
  });
}

void CoordinatorProcess::depose() {
  if (!core_) return;
  trace("leads no more");
  core_.reset();
  queue_.clear();
  is_writing_ = false;
  alarm_.forget();
  context_.network.set_reading(program_, false);
  for (const auto& [connection, session] : std::exchange(sessions_, {})) {
    context_.network.close(program_, connection, Ending::Reset);
  }
}

void CoordinatorProcess::on_persisted() {
  is_writing_ = false;
  if (is_alive_ && core_) carry_out_queue();
}

void CoordinatorProcess::lead_until(Instant until) {
  if (!core_) return;
  core_->lead_until(until);
  if (is_alive_ && !is_carrying_out_) carry_out_queue();
}

void CoordinatorProcess::end_when_idle(bool is_exiting) {
  is_ending_ = true;
  run_core([&](Instant now, Effects& effects) {
    if (core_) core_->on_host_agent_ended(now, is_exiting, effects);
  });
  check_idle();
}

void CoordinatorProcess::check_idle() {
  if (!is_ending_ || !is_alive_ || is_carrying_out_) return;
  const bool is_needed = core_ && !sessions_.empty() && !core_->may_exit();
  if (is_needed) return;
  trace("the coordinator ends with its agent");
  lose_power();
  context_.network.end(program_);
  if (on_ended_) on_ended_();
}

void CoordinatorProcess::lose_power() {
  is_alive_ = false;
  if (leader_announcer_) leader_announcer_->end();
}

const Job* CoordinatorProcess::job(const std::string& run_id) const {
  if (!core_) return nullptr;
  auto it = core_->jobs().find(run_id);
  return it == core_->jobs().end() ? nullptr : it->second.get();
}

// ---------------------------------------------------------------- calls and effects

void CoordinatorProcess::run_core(const std::function<void(Instant, Effects&)>& call) {
  if (!is_alive_ || !core_) return;
  Effects effects;
  call(local_now(), effects);
  for (Effect& effect : effects) queue_.push_back(wish_of(std::move(effect)));
  if (!is_carrying_out_) carry_out_queue();
}

CoordinatorProcess::Wish CoordinatorProcess::wish_of(Effect effect) const {
  Wish wish{std::move(effect), "", std::nullopt};
  const auto* send = std::get_if<Send>(&wish.effect);
  auto it = send == nullptr ? sessions_.end() : sessions_.find(send->session.value);
  if (it == sessions_.end() || !it->second.hello) return wish;
  wish.is_to_impostor = it->second.is_impostors();
  if (wish.is_to_impostor) return wish;
  wish.run_id = it->second.hello->run_id;
  wish.to = it->second.hello->node.incarnation;
  wish.ended_job = core_->ended_job_of(send->session);
  return wish;
}

void CoordinatorProcess::carry_out_queue() {
  is_carrying_out_ = true;
  while (!queue_.empty() && !is_writing_ && core_->is_in_charge(local_now())) {
    const Wish wish = std::move(queue_.front());
    queue_.pop_front();
    if (const auto* send = std::get_if<Send>(&wish.effect)) {
      const bool is_refusal = std::holds_alternative<control::Refused>(send->message) ||
                              std::holds_alternative<control::Redirect>(send->message);
      context_.checks.require(!wish.is_to_impostor || is_refusal,
                              "R10: a foreign client is taken for the node whose id it sends");
      const bool is_sent = sessions_.contains(send->session.value) || spec_.options.leader_lease;
      if (wish.to && is_sent) {
        if (wish.ended_job) {
          context_.checks.on_sent_to_ended_job(*wish.ended_job, *wish.to, send->message);
        } else {
          context_.checks.on_sent(job(wish.run_id), *wish.to, send->message);
        }
        handovers_.on_sent(send->session.value, *wish.to, send->message);
        if (const Job* led = job(wish.run_id); led != nullptr && spec_.options.leader_lease) {
          context_.etcd->watch().on_outcome(wish.run_id, led->term(), send->message);
        }
        if (auto checks = job_checks_.find(wish.run_id); checks != job_checks_.end()) {
          const Job* of = job(wish.run_id);
          if (of != nullptr) checks->second.on_sent(of->term(), *wish.to, send->message);
        }
      }
    }
    std::visit([this](const auto& e) { carry_out(e); }, wish.effect);
  }
  is_carrying_out_ = false;
  check_idle();
  if (!is_alive_ || !core_) return;
  for (const auto& [run_id, job] : core_->jobs()) {
    context_.checks.after_call(job.get());
    if (auto checks = job_checks_.find(run_id); checks != job_checks_.end())
      checks->second.after_call(*job);
  }
  arm_timer();
}

void CoordinatorProcess::carry_out(const Send& effect) {
  auto it = sessions_.find(effect.session.value);
  if (it == sessions_.end()) return;
  Bytes frame;
  control::append_frame(frame, control::encode(effect.message));
  context_.network.send(program_, it->first, std::move(frame));
}

void CoordinatorProcess::carry_out(const Close& effect) {
  if (!sessions_.contains(effect.session.value)) return;
  drop(effect.session.value, effect.is_reset ? Ending::Reset : Ending::Fin);
}

// The core also gets an event for a connection that this side ends.
void CoordinatorProcess::drop(ConnectionId connection, Ending how) {
  sessions_.erase(connection);
  handovers_.on_ended(connection);
  context_.network.close(program_, connection, how);
  run_core([&](Instant now, Effects& e) {
    core_->on_closed(now, SessionId(connection), Job::Ending::Reset, e);
  });
}

void CoordinatorProcess::carry_out(const WantStorePort& effect) {
  int64_t port = prng_.chance(spec_.port_fails) ? 0 : ++ports_;
  run_core([&](Instant now, Effects& e) { core_->on_store_port(now, effect.run_id, port, e); });
}

void CoordinatorProcess::carry_out(const PersistState& effect) {
  is_writing_ = true;
  persist_state_(effect.facts);
}

void CoordinatorProcess::carry_out(const LogEvent& effect) {
  if (effect.level != LogEvent::Level::Debug) trace(effect.text);
}

// ---------------------------------------------------------------- sessions

void CoordinatorProcess::on_accepted(ConnectionId connection) {
  if (!core_) return;
  sessions_[connection];
  core_->on_connected(SessionId(connection), SessionAddresses{"10.0.0.9", "10.0.0.1"});
}

void CoordinatorProcess::on_bytes(ConnectionId connection, std::span<const uint8_t> bytes) {
  auto it = sessions_.find(connection);
  if (it == sessions_.end()) return;
  it->second.input.insert(it->second.input.end(), bytes.begin(), bytes.end());
  take_frames(connection);
}

void CoordinatorProcess::take_frames(ConnectionId connection) {
  for (;;) {
    auto it = sessions_.find(connection);
    if (it == sessions_.end() || !is_alive_) return;
    Session& session = it->second;
    const size_t opening = session.has_completed_handshake ? 0 : sizeof(control::kMagic);
    if (session.input.size() < opening) return;
    auto frame = control::next_frame(std::span(session.input).subspan(opening));
    if (frame.state == control::FrameView::State::NeedMore) return;
    Result<control::AgentMessage> message =
        frame.state == control::FrameView::State::Whole
            ? control::decode_agent(frame.body)
            : Result<control::AgentMessage>(Error{ErrorKind::Protocol, "a broken frame"});
    context_.checks.require(message.ok(), "an agent's frame can't be read");
    if (!message) return drop(connection, Ending::Reset);
    session.input.erase(session.input.begin(),
                        session.input.begin() + static_cast<ptrdiff_t>(opening + frame.consumed));
    session.has_completed_handshake = true;
    if (const auto* hello = std::get_if<control::Hello>(&*message)) session.hello = *hello;
    receive(connection, *message);
  }
}

// A peer that reads the network has the node's key, and may be quicker than the node where the
// coordinator does not know the node's connection. No rule protects against that, so the
// simulation leaves it out.
bool CoordinatorProcess::is_valid_replay(const Session& session,
                                         const control::AgentMessage& message) const {
  if (!session.is_impostors() || session.hello->token.empty()) return false;
  if (!std::holds_alternative<control::Register>(message)) return false;
  const Job* of = job(session.hello->run_id);
  const auto known = of == nullptr ? std::map<Incarnation, cpprun::Node>::const_iterator()
                                   : of->nodes().find(session.hello->node.incarnation);
  return of == nullptr || known == of->nodes().end() ||
         known->second.connection < session.hello->connection;
}

void CoordinatorProcess::record(Incarnation of, const control::AgentMessage& message) {
  constexpr size_t kMost = 32;
  std::vector<control::AgentMessage>& all = recorded_[of];
  if (std::holds_alternative<control::Hello>(message)) all.clear();
  if (all.size() < kMost) all.push_back(message);
}

std::vector<control::AgentMessage> CoordinatorProcess::recorded(Incarnation of) const {
  const auto found = recorded_.find(of);
  return found == recorded_.end() ? std::vector<control::AgentMessage>() : found->second;
}

void CoordinatorProcess::receive(ConnectionId connection, const control::AgentMessage& message) {
  const Session& session = sessions_.at(connection);
  if (is_valid_replay(session, message)) return drop(connection, Ending::Reset);
  if (session.hello) {
    context_.trace.message(context_.event_queue.now(), session.hello->node.name, message);
  }
  if (session.hello && !session.is_impostors()) {
    record(session.hello->node.incarnation, message);
    const Job* of = job(session.hello->run_id);
    const Term term = of == nullptr ? Term() : of->term();
    context_.checks.on_received(spec_.options.term, term, session.hello->node.incarnation, message);
    handovers_.on_message(connection, *session.hello, of, message);
    // The coordinator forgets what such a node reports, and keeps an ended job with the same run
    // id. If it later sends that job's outcome to another node, it does not continue the job of the
    // node that it has turned away, so R17 does not apply.
    const bool is_turned_away =
        handovers_.is_redirected(connection) || must_wait_for_exit(of, message);
    if (!spec_.options.leader_lease && !is_turned_away) {
      receive_as_memory(of, *session.hello, message);
    }
  }
  run_core(
      [&](Instant now, Effects& e) { core_->on_message(now, SessionId(connection), message, e); });
  handovers_.after_message();
}

// This process ends, so it begins no further job (R9).
bool CoordinatorProcess::must_wait_for_exit(const Job* job,
                                            const control::AgentMessage& message) const {
  const auto* facts = std::get_if<control::Register>(&message);
  if (facts == nullptr || !is_ending_) return false;
  return job == nullptr || (job->is_over() && !job->has_led(*facts));
}

// With a leader lease the job continues from the persisted facts, not from what agents remember.
void CoordinatorProcess::receive_as_memory(const Job* job, const control::Hello& from,
                                           const control::AgentMessage& message) {
  const CoordinatorOptions& own = spec_.options;
  auto checks = job_checks_.try_emplace(from.run_id, context_.checks, own.term, own.embedded,
                                        !own.standby_of.empty(), own.job_key);
  checks.first->second.on_message(job, from, message);
}

void CoordinatorProcess::on_ended(ConnectionId connection, Ending how) {
  auto session = sessions_.extract(connection);
  if (session.empty()) return;
  handovers_.on_ended(connection);
  const std::optional<control::Hello>& hello = session.mapped().hello;
  const bool is_nodes = hello && !session.mapped().is_impostors();
  const bool is_leave = how == Ending::Fin && is_nodes && job_checks_.contains(hello->run_id);
  if (is_leave) job_checks_.at(hello->run_id).on_fin(hello->node.incarnation);
  context_.network.close(program_, connection, Ending::Fin);
  auto kind = how == Ending::Fin ? Job::Ending::Fin : Job::Ending::Reset;
  run_core([&](Instant now, Effects& e) { core_->on_closed(now, SessionId(connection), kind, e); });
}

// ---------------------------------------------------------------- its timer

void CoordinatorProcess::arm_timer() {
  if (!is_alive_ || is_frozen_ || !core_) return;
  alarm_.set(spec_.clock.truth(stuck_after_.look_at(core_->next_deadline())));
}

void CoordinatorProcess::on_timer() {
  if (!is_alive_ || !core_) return;  // it sleeps
  if (stuck_after_.may_expire(local_now(), core_->next_deadline())) {
    run_core([this](Instant now, Effects& e) { core_->on_time(now, e); });
    const bool has_looked = !is_alive_ || core_->next_deadline() > local_now();
    context_.checks.require(has_looked, "limits: a coordinator's deadline stays in the past");
    if (!has_looked) return;  // prevents an endless loop
  }
  arm_timer();
}

// ---------------------------------------------------------------- faults

void CoordinatorProcess::kill(bool is_reset) {
  if (!is_alive_) return;
  if (core_) trace("the coordinator is killed");
  if (leader_announcer_) leader_announcer_->end();
  is_alive_ = false;
  context_.network.end(program_, is_reset);
}

void CoordinatorProcess::freeze() {
  if (!is_alive_ || is_frozen_) return;
  if (core_) trace("the coordinator freezes");
  is_frozen_ = true;
  if (leader_announcer_) leader_announcer_->set_frozen(true);
  context_.network.set_reading(program_, false);
}

void CoordinatorProcess::stop_reading() {
  if (is_alive_ && !is_frozen_ && core_) context_.network.set_reading(program_, false);
}

void CoordinatorProcess::read_again() {
  if (!is_alive_ || is_frozen_ || !core_) return;
  context_.network.set_reading(program_, true);
  context_.network.deliver_unread(program_);
}

void CoordinatorProcess::thaw() {
  if (!is_alive_ || !std::exchange(is_frozen_, false)) return;
  if (!core_) return;
  trace("the coordinator runs again");
  if (leader_announcer_) leader_announcer_->set_frozen(false);
  const bool is_timer_first = prng_.chance(0.5);
  if (is_timer_first) on_timer();
  context_.network.set_reading(program_, true);
  context_.network.deliver_unread(program_);
  if (!is_timer_first) on_timer();
}

}  // namespace cpprun::sim
