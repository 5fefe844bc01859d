#include "tests/support/sim/node.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <utility>

#include "common/limits/agent.hpp"
#include "common/limits/election.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/snapshots.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "tests/support/sim/node_keys.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

const char* how_text(agent::Finish::How how) {
  constexpr std::array kTexts{"success",  "failure",      "an error",
                              "a signal", "nothing lost", "its node unusable"};
  return kTexts.at(static_cast<size_t>(how));
}

RoundName name_of(const control::RankAssignment& assignment) {
  return RoundName{assignment.term, assignment.round};
}

// A little less than the protocol allows, for the kernel's own delay.
constexpr Duration kDeathTakes = limits::kDeathGrace - 10ms;

}  // namespace

Node::Node(SimContext& context, NodeSpec spec)
    : context_(context),
      spec_(std::move(spec)),
      prng_(context.prng.child(spec_.agent.hello.node.incarnation.value + 1000)),
      program_(context.network.add(spec_.host, *this)),
      core_(spec_.agent),
      client_({Endpoint{"head", kJobPort}, spec_.is_own, limits::kWaitReminderInterval,
               limits::kReconnectMax, context.etcd != nullptr}),
      alarm_(context.event_queue,
             [this] {
               if (!is_frozen_) on_timer();
             }),
      workers_(context, spec_, prng_, worker_events()) {
  if (spec_.has_control_port && !spec_.is_own) {
    CoordinatorSpec lead;
    lead.host = spec_.host;
    lead.port = 30'000 + static_cast<int>(spec_.agent.hello.node.incarnation.value);
    lead.is_asleep = true;
    lead.clock = spec_.clock;
    lead.label = spec_.label;
    own_lead_ = std::make_unique<CoordinatorProcess>(context, lead);
    lead_ = own_lead_.get();
    core_.on_control_port(lead.port);
  }
  if (spec_.agent.facts.has_snapshot_dir) core_.on_serving(4711);
  if (context.etcd != nullptr) make_candidate();
}

void Node::start() {
  call_client([this](Instant, ReconnectPolicy::Effects& e) { client_.start(e); });
  run_core([this](Instant now, agent::Effects& e) { core_.start(now, e); });
  if (candidate_) candidate_->start();
}

// ---------------------------------------------------------------- calls and effects

void Node::run_core(const Call& call) {
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

void Node::call_client(const std::function<void(Instant, ReconnectPolicy::Effects&)>& call) {
  if (!is_running()) return;
  ReconnectPolicy::Effects effects;
  call(local_now(), effects);
  for (const ReconnectPolicy::Effect& effect : effects) {
    std::visit([this](const auto& e) { carry_out(e); }, effect);
  }
  arm_timer();
}

// A frozen process sees it when it runs again.
void Node::when_awake(std::function<void()> event) {
  if (!is_frozen_) return event();
  mailbox_.push_back(std::move(event));
}

void Node::carry_out(const agent::SendMessage& effect) {
  if (!connection_ || is_closing_) return;
  Bytes frame;
  control::append_frame(frame, control::encode(effect.message));
  context_.network.send(program_, *connection_, std::move(frame));
  if (after_message_) context_.event_queue.in(1us, std::exchange(after_message_, nullptr));
}

void Node::carry_out(const agent::Disconnect& effect) {
  if (std::exchange(is_closing_, true)) return;
  client_.close();
  hang_up(effect.is_reset ? Ending::Reset : Ending::Fin);
}

void Node::carry_out(const agent::Reconnect& effect) {
  context_.event_queue.in(Duration{}, [this, current = connection_, effect] {
    when_awake([this, current, effect] {
      if (!current || connection_ != current || is_closing_) return;
      call_client([&](Instant now, ReconnectPolicy::Effects& e) {
        client_.on_broken(now, e, effect.is_elsewhere);
      });
    });
  });
}

void Node::carry_out(const agent::Routes& effect) {
  client_.set_routes(effect.places, effect.is_sure, false);
}

void Node::carry_out(const agent::BecomeCoordinator& effect) {
  context_.checks.on_promotion(id().incarnation, term_);
  CoordinatorOptions options;
  options.host = spec_.label;
  options.term = effect.term;
  options.embedded = id().incarnation;
  options.node_id_of = id_of_key;
  options.standby_of = spec_.agent.hello.run_id;
  options.job_key = effect.job_key;
  options.make_secret = [this] { return "secret of " + spec_.label; };
  lead_->wake(options);
  client_.set_routes({Endpoint{address_of(spec_.host), static_cast<uint16_t>(lead_->spec().port)}},
                     true, true);
}

void Node::carry_out(const agent::ReservePort&) {
  int64_t port = 40'000 + ++ports_;
  run_core([this, port](Instant now, agent::Effects& e) { core_.on_port(now, port, e); });
}

void Node::carry_out(const agent::SetWorkerLease& effect) {
  if (!workers_.set_lease(effect.deadline)) return;
  run_core([this](Instant now, agent::Effects& e) { core_.on_workers_killed(now, e); });
}

void Node::carry_out(const agent::LogEvent& effect) {
  if (effect.level >= agent::LogEvent::Level::Status) trace("prints: " + effect.text);
}

void Node::carry_out(const agent::Finish& effect) {
  finish_ = effect;
  trace(std::string("ends with ") + how_text(effect.how) +
        (effect.text.empty() ? "" : ": " + effect.text));
  context_.trace.fold(id().incarnation.value * 16 + static_cast<uint64_t>(effect.how));
  context_.checks.on_finish(term_, has_running_workers(), effect);
  context_.checks.require(
      effect.how != agent::Finish::How::Unusable || (live_workers() > 0 && !has_running_workers()),
      "stuck: " + label() + " is unusable, and SIGKILL was not in vain");
  client_.close();
  hang_up(Ending::Reset);  // unless a leave is already in flight
  context_.network.end(program_);
  workers_.kill_all(kDeathTakes);
  if (lead_ == nullptr) return;
  if (candidate_) return leave_election(effect);
  // A process that SIGTERM asked to leave has a short time to inform the other nodes.
  const bool is_signal = effect.signal != 0;
  const Duration stays = effect.stays_until - local_now();
  const bool is_urgent = is_signal && effect.signal != SIGTERM && stays <= Duration{};
  if (!lead_->is_awake() || is_urgent) return lead_->kill(false);
  lead_->end_when_idle(is_signal);
  if (is_signal) {
    context_.event_queue.in(std::max(stays, limits::kLeaderLeaveTimeout),
                            [this] { lead_->kill(false); });
  }
}

// ---------------------------------------------------------------- the connection to the
// coordinator

void Node::carry_out(const ReconnectPolicy::Connect&) {
  dialled_ = client_.target();
  const bool is_head = dialled_.host == "head";
  const HostId to = is_head ? context_.coordinator_host
                            : std::atoi(dialled_.host.substr(dialled_.host.rfind('.') + 1).c_str());
  dialling_ = context_.network.dial(program_, to, dialled_.port);
}
void Node::carry_out(const ReconnectPolicy::ResetConnection&) { hang_up(Ending::Reset); }
void Node::carry_out(const ReconnectPolicy::Broken&) {
  trace("loses its connection");
  run_core([this](Instant now, agent::Effects& e) { core_.on_disconnected(now, e); });
}
void Node::carry_out(const ReconnectPolicy::Probe&) {
  context_.event_queue.in(1ms, [this] {
    when_awake([this] {
      call_client([this](Instant now, ReconnectPolicy::Effects& e) {
        client_.on_probed(now, false, "", e);
      });
    });
  });
}
void Node::carry_out(const ReconnectPolicy::Refused& effect) {
  run_core([&](Instant now, agent::Effects& e) { core_.on_refused(now, effect.places, e); });
}
void Node::carry_out(const ReconnectPolicy::Trouble& trouble) { trace("prints: " + trouble.text); }

void Node::hang_up(Ending how) {
  dialling_.reset();
  if (!connection_) return;
  context_.network.close(program_, *std::exchange(connection_, std::nullopt), how);
}

void Node::on_dialled(ConnectionId connection, bool is_connected, const std::string& why) {
  when_awake([this, connection, is_connected, why] {
    if (dialling_ != connection || !is_running() || is_closing_) return;
    dialling_.reset();
    if (!is_connected) {
      std::vector<Endpoint> refused;
      if (why == "Connection refused") refused.push_back(dialled_);
      call_client([&](Instant now, ReconnectPolicy::Effects& e) {
        client_.on_connect_failed(now, why, refused, e);
      });
      return;
    }
    connection_ = connection;
    context_.network.send(program_, connection,
                          Bytes(std::begin(control::kMagic), std::end(control::kMagic)));
    client_.on_connected(local_now());
    run_core([this](Instant now, agent::Effects& e) {
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
    call_client(
        [&](Instant now, ReconnectPolicy::Effects& e) { message = client_.next_message(now, e); });
    if (!message) return;
    context_.trace.message(context_.event_queue.now(), spec_.label, *message);
    judge_move(connection, *message);
    const auto place = must_stay(*message) ? std::optional(client_.target()) : std::nullopt;
    look_at_message(*message);
    core_.on_savers(workers_.can_save());
    run_core([&](Instant now, agent::Effects& e) { core_.on_message(now, *message, e); });
    const bool has_followed = place && connection_ == connection && client_.target() != *place;
    context_.checks.require(!has_followed, "R17: " + label() + " is redirected to an older term");
  }
}

void Node::look_at_message(const control::CoordinatorMessage& message) {
  if (const auto* registered = std::get_if<control::Registered>(&message)) {
    term_ = std::max(term_, registered->term);
  }
  if (std::holds_alternative<control::Redirect>(message) && is_blank()) term_ = Term();
  if (std::holds_alternative<control::JobResult>(message)) knows_outcome_ = true;
  if (const auto* check = std::get_if<control::CheckLink>(&message)) check_link(*check);
  const auto* assignment = std::get_if<control::RankAssignment>(&message);
  if (assignment != nullptr && assignment->term >= term_)
    assigned_ = RoundName{assignment->term, assignment->round};
}

void Node::check_link(const control::CheckLink& check) {
  const LinkPlan plan = context_.plan_link(*this, check.peer.port);
  const control::LinkResult result{check.number, plan.fails ? "no answer" : "", 2 * check.bytes,
                                   plan.takes};
  context_.event_queue.in(plan.takes, [this, result] {
    when_awake([this, result] { carry_out(agent::SendMessage{result}); });
  });
}

void Node::on_ended(ConnectionId connection, Ending) {
  if (connection_ != connection) return;
  call_client([this](Instant now, ReconnectPolicy::Effects& e) { client_.on_broken(now, e); });
}

// ---------------------------------------------------------------- its timer

void Node::arm_timer() {
  if (!is_running()) return;
  alarm_.set(spec_.clock.truth(std::min(core_.next_deadline(), client_.next_deadline())));
}

void Node::on_timer() {
  if (local_now() >= client_.next_deadline()) {
    call_client([this](Instant now, ReconnectPolicy::Effects& e) { client_.on_time(now, e); });
  }
  if (is_running() && local_now() >= core_.next_deadline()) {
    run_core([this](Instant now, agent::Effects& e) { core_.on_time(now, e); });
    const bool has_looked = !is_running() || core_.next_deadline() > local_now();
    context_.checks.require(has_looked, "limits: an agent's deadline stays in the past");
    if (!has_looked) return;  // prevents an endless loop
  }
  arm_timer();
}

// ---------------------------------------------------------------- workers

NodeWorkers::Events Node::worker_events() {
  NodeWorkers::Events events;
  events.is_running = [this] { return is_running(); };
  events.is_disk_full = [this] { return is_disk_full(); };
  events.when_awake = [this](std::function<void()> event) { when_awake(std::move(event)); };
  events.on_elastic = [this] {  // it completes its first step at once
    core_.on_can_regroup();
    core_.on_step();
  };
  events.on_exit = [this](const WorkerExit& end, bool is_excused) {
    const bool is_to_be_reported = !end.is_success() && !end.is_stopped_by_us && !is_excused &&
                                   core_.state() == agent::Agent::State::Running;
    if (is_to_be_reported) {
      context_.checks.on_reported_failure(id().incarnation, name_of(*assignment_));
    }
    run_core([&](Instant now, agent::Effects& e) { core_.on_worker_exit(now, end, e); });
  };
  events.on_round_over = [this](bool is_empty) {
    run_core([&](Instant now, agent::Effects& e) {
      is_empty ? core_.on_all_workers_gone(now, e) : core_.on_workers_released(now, e);
    });
  };
  events.on_saved = [this] { save_snapshot(); };
  events.on_stuck = [this] {
    run_core([this](Instant, agent::Effects& e) { core_.on_stuck("a worker of " + label(), e); });
  };
  return events;
}

void Node::carry_out(const agent::PrepareRound&) {
  run_core([this](Instant now, agent::Effects& e) { core_.on_prepared(now, e); });
}

void Node::carry_out(const agent::RunNodeCheck&) {
  constexpr Duration kCheckTakes = std::chrono::milliseconds(20);
  context_.event_queue.in(kCheckTakes, [this] {
    when_awake([this] {
      run_core(
          [this](Instant now, agent::Effects& e) { core_.on_node_checked(now, check_result_, e); });
    });
  });
}

void Node::carry_out(const agent::StartWorkers& effect) {
  context_.checks.on_start(id().incarnation, effect.assignment, term_);
  context_.checks.require(workers_.may_start(), "S1: an agent starts workers beside old ones");
  assignment_ = effect.assignment;
  context_.trace.fold(id().incarnation.value ^ static_cast<uint64_t>(assignment_->round.value)
                                                   << 32);
  const std::string kept = workers_.kept_text();
  workers_.begin_round(name_of(*assignment_));
  SpawnPlan plan = context_.plan(*this, effect.assignment);
  if (plan.fails) {
    trace("can't start its workers");
    context_.checks.on_true_failure(id().name, name_of(effect.assignment));
    run_core([this](Instant now, agent::Effects& e) {
      core_.on_start_failed(now, Error{ErrorKind::BadValue, "no such program"}, e);
    });
    return;
  }
  trace("starts its workers of round " + std::to_string(assignment_->round.value) + kept);
  workers_.start(plan.lives, assignment_->base_rank);
  if (!plan.lives.empty()) save_as_it_goes(plan.lives.front().saves_each, 1);
  if (plan.is_resume_unusable) fall_back();
  context_.checks.on_workers_live(name_of(*assignment_), static_cast<int64_t>(plan.lives.size()));
  run_core([this](Instant, agent::Effects& e) { core_.on_started(e); });
  if (context_.on_workers_changed) context_.on_workers_changed();
}

// ---------------------------------------------------------------- snapshots

void Node::save_snapshot() {
  const int64_t step = context_.event_queue.now().nanoseconds() / 1'000'000;
  std::string id = std::to_string(step);
  id.insert(0, 32 - id.size(), '0');
  keep_snapshot(control::SnapshotName{step, id});
}

void Node::keep_snapshot(control::SnapshotName snapshot) {
  if (std::find(snapshots_.begin(), snapshots_.end(), snapshot) != snapshots_.end()) return;
  const auto is_older = [&](const auto& known) { return known.step <= snapshot.step; };
  snapshots_.insert(std::find_if(snapshots_.begin(), snapshots_.end(), is_older), snapshot);
  if (snapshots_.size() > limits::kSnapshotsReported) snapshots_.pop_back();
}

// One step per millisecond. The same step of the same round is the same snapshot on every node.
void Node::save_as_it_goes(Duration each, int64_t nth) {
  if (each == Duration{} || !spec_.agent.facts.has_snapshot_dir) return;
  context_.event_queue.in(each, [this, each, nth, start = workers_.starts()] {
    if (start != workers_.starts() || !is_running() || is_paused() || live_workers() == 0) return;
    save_as_it_goes(each, nth + 1);
    if (core_.state() != agent::Agent::State::Running || is_disk_full()) return;
    const int64_t begun = assignment_->resume ? assignment_->resume->snapshot.step : 0;
    const int64_t step = begun + nth * (each / 1ms);
    std::array<char, 40> id{};
    std::snprintf(id.data(), id.size(), "%08llx%08llx%016llx",
                  static_cast<unsigned long long>(assignment_->term.value),
                  static_cast<unsigned long long>(assignment_->round.value),
                  static_cast<unsigned long long>(step));
    keep_snapshot({step, std::string(id.data(), 32)});
    when_awake([this] {
      if (core_.state() != agent::Agent::State::Running) return;
      run_core([this](Instant now, agent::Effects& e) { core_.on_snapshots(now, snapshots_, e); });
    });
  });
}

// The workers report that they cannot use the snapshot of the round.
void Node::fall_back() {
  if (!assignment_->resume) return;
  context_.event_queue.in(context_.snapshot_prng.up_to(200ms), [this, start = workers_.starts()] {
    if (start != workers_.starts() || live_workers() == 0) return;
    when_awake(
        [this] { run_core([this](Instant, agent::Effects& e) { core_.on_fell_back(-1, e); }); });
  });
}

void Node::carry_out(const agent::ScanSnapshots&) {
  context_.event_queue.in(context_.snapshot_prng.up_to(20ms), [this] {
    when_awake([this] {
      run_core([this](Instant now, agent::Effects& e) { core_.on_snapshots(now, snapshots_, e); });
    });
  });
}

void Node::carry_out(const agent::FetchSnapshot& effect) {
  const FetchPlan plan = context_.plan_fetch();
  trace("fetches the snapshot of step " + std::to_string(effect.resume.snapshot.step));
  context_.checks.require(workers_.is_idle(), "an agent fetches while it has workers");
  context_.event_queue.in(
      plan.takes, [this, plan, number = ++fetches_, resume = effect.resume, round = assigned_] {
        when_awake([this, plan, number, resume, round] {
          if (number != fetches_) return;
          const bool is_damaged = plan.is_damaged && !is_disk_full();
          const bool fails = plan.fails || is_disk_full();
          if (fails && !is_damaged) context_.checks.on_true_failure(id().name, round);
          if (!fails) keep_snapshot(resume.snapshot);
          run_core([&](Instant now, agent::Effects& e) {
            if (!fails) return core_.on_fetched(now, e);
            core_.on_fetch_failed(now, Error{ErrorKind::System, "the fetch failed"}, is_damaged, e);
          });
        });
      });
}

// ---------------------------------------------------------------- faults

void Node::stop_reading() {
  if (!is_running() || is_frozen_) return;
  trace("does not read");
  context_.network.set_reading(program_, false);
}

void Node::read_again() {
  if (!is_running() || is_frozen_) return;
  context_.network.set_reading(program_, true);
  context_.network.deliver_unread(program_);
}

void Node::request_fault_permit(int64_t fault, int64_t times) {
  control::FaultPermitRequest asked;
  asked.fault = fault;
  asked.times = times;
  carry_out(agent::SendMessage{asked});
}

void Node::hang_worker(size_t local_rank) {
  WorkerExit hung = workers_.worker(local_rank);
  hung.hang = "no heartbeat for 60.0 s";
  trace("its worker " + std::to_string(hung.rank.value) + " hangs");
  context_.checks.on_true_failure(id().name, name_of(*assignment_));
  context_.checks.on_reported_failure(id().incarnation, name_of(*assignment_));
  run_core([&](Instant now, agent::Effects& e) { core_.on_hang(now, hung, e); });
}

void Node::fill_disk(Instant until) {
  if (!is_running()) return;
  trace("its disk is full");
  disk_is_full_until_ = std::max(disk_is_full_until_, until);
}

void Node::kill(bool is_reset) {
  if (!is_running() || is_paused()) return;
  trace("its agent is killed");
  is_alive_ = false;
  context_.network.end(program_, is_reset);
  if (lead_ != nullptr) lead_->kill(is_reset);
  if (candidate_) candidate_->end();
  workers_.kill_all(kDeathTakes);
}

// Everything on the host ends at once without a message. The caller ends its connections.
void Node::lose_power() {
  if (!is_running()) return;
  trace("its host loses power");
  is_alive_ = false;
  if (lead_ != nullptr) lead_->lose_power();
  if (candidate_) candidate_->end();
  workers_.lose_power();
  if (context_.on_workers_changed) context_.on_workers_changed();
}

void Node::freeze() {
  if (!is_running() || is_frozen_) return;
  trace("freezes");
  is_frozen_ = true;
  context_.network.set_reading(program_, false);
  if (lead_ != nullptr) lead_->freeze();
  if (candidate_) candidate_->set_frozen(true);
}

void Node::pause() {
  if (!is_running() || is_frozen_) return;
  freeze();
  trace("and its host stands still");
  context_.network.cut_off(spec_.host);
  workers_.pause();
}

void Node::thaw() {
  if (!is_frozen_ || !is_alive_) return;
  trace("runs again");
  is_frozen_ = false;
  if (candidate_) candidate_->set_frozen(false);
  if (is_paused()) {
    context_.network.mend_host(spec_.host);
    workers_.resume();
  }
  // The loop and the kernel decide which event the process handles first.
  std::array<std::function<void()>, 3> first{[this] {
                                               on_timer();
                                               if (candidate_) candidate_->on_timer();
                                             },
                                             [this] {
                                               context_.network.set_reading(program_, true);
                                               context_.network.deliver_unread(program_);
                                             },
                                             [this] {
                                               for (auto& event : std::exchange(mailbox_, {}))
                                                 event();
                                             }};
  for (size_t i = 3; i > 1; --i) {
    std::swap(first[i - 1], first[static_cast<size_t>(prng_.below(static_cast<int64_t>(i)))]);
  }
  for (auto& poll_leader : first) {
    if (is_running() && !is_frozen_) poll_leader();
  }
  if (lead_ != nullptr) lead_->thaw();
}

void Node::signal(int number) {
  if (!is_running()) return;
  trace("gets signal " + std::to_string(number));
  when_awake([this, number] {
    const bool is_again = std::exchange(was_asked_, true) && number == SIGTERM;
    run_core([&](Instant now, agent::Effects& e) {
      const size_t before = e.size();
      core_.on_signal(now, number, e);
      context_.checks.require(!is_again || e.size() == before,
                              "signals: a further SIGTERM is no new request");
    });
  });
}

// ---------------------------------------------------------------- a change of the coordinator

bool Node::must_stay(const control::CoordinatorMessage& message) const {
  const auto* moved = std::get_if<control::Redirect>(&message);
  return moved != nullptr && !is_blank() && moved->term < term_;
}

// Before the agent receives the answer.
void Node::judge_move(ConnectionId connection, const control::CoordinatorMessage& message) {
  const bool is_leading = lead_ != nullptr && lead_->is_awake();
  if (is_leading) return;
  if (const auto* registered = std::get_if<control::Registered>(&message)) {
    if (registered->term < term_) must_leave(connection, "a coordinator of an older term");
  }
  const auto* moved = std::get_if<control::Redirect>(&message);
  if (moved == nullptr) return;
  if (is_blank() || moved->term >= term_) {
    must_leave(connection, "whose coordinator has redirected it");
  }
}

// Unless it is frozen it disconnects in the same instant.
void Node::must_leave(ConnectionId connection, const std::string& why) {
  context_.event_queue.in(1ms, [this, connection, why] {
    const bool stays = is_running() && !is_frozen_ && !is_closing_ && connection_ == connection;
    context_.checks.require(!stays, "R17: " + label() + " stays with " + why);
  });
}

// ---------------------------------------------------------------- election

void Node::make_candidate() {
  Election::Options options;
  options.run_id = spec_.agent.hello.run_id;
  options.self = control::Leader{id(), address_of(spec_.host), lead_->spec().port};
  options.lease = spec_.agent.facts.job_spec.lease;
  Candidate::Callbacks callbacks;
  callbacks.lead = [this](const election::Elected& message) { lead(message); };
  callbacks.extend = [this](Instant until) { lead_->lead_until(until); };
  callbacks.written = [this] { lead_->on_persisted(); };
  callbacks.lost = [this](const std::string& why) {
    trace("leads the job no more: " + why);
    on_deposed();
  };
  callbacks.follow = [this](const control::Leader& leader) {
    const Endpoint place{leader.address, static_cast<uint16_t>(leader.port)};
    run_core([&](Instant, agent::Effects& e) { core_.on_led_from(place, e); });
  };
  callbacks.when_awake = [this](std::function<void()> event) { when_awake(std::move(event)); };
  candidate_ =
      std::make_unique<Candidate>(context_, spec_.host, spec_.clock, options, std::move(callbacks));
  lead_->when_persisting(
      [this](const control::PersistedJobState& facts) { candidate_->write(facts); });
  lead_->when_ended([this] { candidate_->leave(lead_->is_idle()); });
}

void Node::lead(const election::Elected& message) {
  CoordinatorOptions options;
  options.host = spec_.label;
  options.term = message.term;
  options.embedded = id().incarnation;
  options.node_id_of = id_of_key;
  options.leader_lease = LeaderLease{spec_.agent.hello.run_id, message.facts, message.until};
  options.make_secret = [this] { return "secret of " + spec_.label; };
  lead_->wake(options);
  const Endpoint own{address_of(spec_.host), static_cast<uint16_t>(lead_->spec().port)};
  run_core([&](Instant, agent::Effects& e) { core_.on_led_from(own, e); });
}

void Node::on_deposed() {
  lead_->depose();
  if (!finish_) return;
  lead_->kill(false);
  candidate_->leave(false);
}

// The agent has ended. Others may still need the coordinator in this process. A coordinator whose
// agent was asked to stop ends soon.
void Node::leave_election(const agent::Finish& finish) {
  const bool is_signal = finish.signal != 0;
  const auto go = [this] {
    lead_->kill(false);
    candidate_->leave(false);
  };
  if (!candidate_->is_leading() || (is_signal && finish.signal != SIGTERM)) return go();
  lead_->end_when_idle(is_signal);
  const Duration stays = finish.stays_until - local_now();
  if (is_signal) context_.event_queue.in(std::max(stays, limits::kLeaderLeaveTimeout), go);
}

}  // namespace cpprun::sim
