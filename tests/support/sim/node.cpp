#include "tests/support/sim/node.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/election.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/suspension.hpp"
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

}  // namespace

Node::Node(SimContext& context, NodeSpec spec)
    : context_(context),
      spec_(std::move(spec)),
      prng_(context.prng.child(spec_.agent.hello.node.incarnation.value + 1000)),
      program_(context.network.add(spec_.host, *this)),
      core_(spec_.agent),
      client_({Endpoint{"head", kJobPort}, spec_.is_own, limits::kWaitReminderInterval,
               limits::kReconnectMax, context.etcd != nullptr}),
      alarm_(context.event_queue, [this] {
        if (!is_frozen_) on_timer();
      }) {
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
  tell_client([this](Instant, ReconnectPolicy::Effects& e) { client_.start(e); });
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

void Node::tell_client(const std::function<void(Instant, ReconnectPolicy::Effects&)>& call) {
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
      tell_client([&](Instant now, ReconnectPolicy::Effects& e) {
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
  worker_lease_deadline_ = effect.deadline;
  if (held_until_ && effect.deadline > local_now()) end_hold();
  arm_reaper();
  report_reaper_kill();
}

void Node::carry_out(const agent::LogEvent& effect) {
  if (effect.level >= agent::LogEvent::Level::Status) trace("says: " + effect.text);
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
  kill_workers(limits::kDeathGrace - 10ms);
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
      tell_client(
          [this](Instant now, ReconnectPolicy::Effects& e) { client_.on_probed(now, false, e); });
    });
  });
}
void Node::carry_out(const ReconnectPolicy::Refused& effect) {
  run_core([&](Instant now, agent::Effects& e) { core_.on_refused(now, effect.places, e); });
}
void Node::carry_out(const ReconnectPolicy::Trouble& trouble) { trace("says: " + trouble.text); }

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
      tell_client([&](Instant now, ReconnectPolicy::Effects& e) {
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
    tell_client(
        [&](Instant now, ReconnectPolicy::Effects& e) { message = client_.next_message(now, e); });
    if (!message) return;
    context_.trace.message(context_.event_queue.now(), spec_.label, *message);
    judge_move(connection, *message);
    const auto place = must_stay(*message) ? std::optional(client_.target()) : std::nullopt;
    look_at_message(*message);
    core_.on_savers(can_save());
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
    told_ = RoundName{assignment->term, assignment->round};
}

void Node::on_ended(ConnectionId connection, Ending) {
  if (connection_ != connection) return;
  tell_client([this](Instant now, ReconnectPolicy::Effects& e) { client_.on_broken(now, e); });
}

// ---------------------------------------------------------------- its timer

void Node::arm_timer() {
  if (!is_running()) return;
  alarm_.set(spec_.clock.truth(std::min(core_.next_deadline(), client_.next_deadline())));
}

void Node::on_timer() {
  if (local_now() >= client_.next_deadline()) {
    tell_client([this](Instant now, ReconnectPolicy::Effects& e) { client_.on_time(now, e); });
  }
  if (is_running() && local_now() >= core_.next_deadline()) {
    run_core([this](Instant now, agent::Effects& e) { core_.on_time(now, e); });
    const bool has_looked = !is_running() || core_.next_deadline() > local_now();
    context_.checks.require(has_looked, "limits: an agent's deadline stays in the past");
    if (!has_looked) return;  // prevents an endless loop
  }
  arm_timer();
}

// ---------------------------------------------------------------- the coordinator on this host

namespace {
// A little less than the protocol allows, for the kernel's own delay.
constexpr Duration kKillDuration = limits::kKillDuration - 10ms;
constexpr Duration kDeathTakes = limits::kDeathGrace - 10ms;
constexpr int kCannotSave = 1;

RoundName name_of(const control::RankAssignment& assignment) {
  return RoundName{assignment.term, assignment.round};
}
}  // namespace

int64_t Node::live_workers() const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [](const Worker& w) { return w.is_alive; });
}

bool Node::has_running_workers() const {
  return std::any_of(workers_.begin(), workers_.end(), [this](const Worker& w) {
    return w.is_alive && w.killed_at > context_.event_queue.now();
  });
}

// ---------------------------------------------------------------- workers

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
  context_.checks.require(may_start(), "S1: an agent starts workers beside old ones");
  had_survivors_ = std::exchange(has_survivors_, false);
  assignment_ = effect.assignment;
  context_.trace.fold(id().incarnation.value ^ static_cast<uint64_t>(assignment_->round.value)
                                                   << 32);
  const std::string kept = kept_text();
  workers_.clear();
  ++starts_;
  killed_at_.reset();
  stuck_after_ = limits::kKillTimeout;
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
  for (size_t i = 0; i < plan.lives.size(); ++i) {
    const WorkerBehavior& liveness = plan.lives[i];
    Worker& worker = workers_.emplace_back();
    worker.end.local_rank = LocalRank(static_cast<int64_t>(i));
    worker.end.rank = Rank(assignment_->base_rank + static_cast<int64_t>(i));
    worker.end.pid = static_cast<int>(4000 + i);
    worker.ignores_sigterm = liveness.ignores_sigterm;
    worker.outlives_kill = liveness.outlives_kill;
    worker.stops_in = liveness.stops_in;
    worker.can_save = liveness.can_save;
    worker.releases_in = liveness.releases_in;
    if (worker.releases_in > Duration{}) take_elastic_worker();
    worker.ready_at = context_.event_queue.now() + liveness.ready_in;
    if (!liveness.is_hanging)
      end_worker_at(worker, worker.ready_at + liveness.runs, liveness.exit_code);
  }
  if (!plan.lives.empty()) save_as_it_goes(plan.lives.front().saves_each, 1);
  if (plan.is_resume_unusable) fall_back();
  context_.checks.on_workers_live(name_of(*assignment_), static_cast<int64_t>(workers_.size()));
  run_core([this](Instant, agent::Effects& e) { core_.on_started(e); });
  if (context_.on_workers_changed) context_.on_workers_changed();
}

void Node::carry_out(const agent::StopWorkers& effect) {
  for (Worker& worker : workers_) {
    if (!worker.is_alive) continue;
    const bool may_stay = effect.keeps_survivors && worker.end.local_rank != effect.hung;
    worker.is_asked = may_stay && worker.releases_in > Duration{};
    worker.is_released = false;
    if (worker.is_asked) ask_to_regroup(static_cast<size_t>(worker.end.local_rank.value));
    if (worker.is_asked) continue;
    const bool is_ready = worker.ready_at <= context_.event_queue.now();
    worker.is_saving = effect.lets_save && worker.can_save && is_ready;
    stop_worker(worker, effect.signal, effect.grace);
  }
  const Instant kill =
      context_.event_queue.now() + (effect.signal == SIGKILL ? Duration{} : effect.grace);
  killed_at_ = std::min(killed_at_.value_or(kill), kill);
  if (effect.is_urgent) stuck_after_ = limits::kUrgentKillTimeout;
  watch_killed();
}

void Node::carry_out(const agent::EndSaving& effect) {
  for (Worker& worker : workers_) {
    if (!worker.is_alive || !std::exchange(worker.is_saving, false)) continue;
    stop_worker(worker, effect.signal, worker.stops_in);
  }
}

void Node::ask_to_regroup(size_t local_rank) {
  Worker& worker = workers_[local_rank];
  if (worker.killed_at.is_never()) worker.ends_at = Instant::never();
  context_.event_queue.at(context_.event_queue.now() + worker.releases_in,
                          [this, local_rank, starts = starts_] {
                            if (starts == starts_ && !paused_at_) release(local_rank);
                          });
}

void Node::release(size_t local_rank) {
  Worker& worker = workers_[local_rank];
  if (!worker.is_alive || !worker.is_asked || !worker.ends_at.is_never()) return;
  worker.is_asked = false;
  worker.is_released = worker.has_left_group = true;
  uncount(worker);
  trace("its worker " + std::to_string(worker.end.rank.value) + " leaves its group");
  report_end();
}

void Node::report_end() {
  const auto released =
      std::ranges::count_if(workers_, [](const Worker& w) { return w.is_alive && w.is_released; });
  if (live_workers() > released) return;
  if (released > 0 && std::exchange(has_survivors_, true)) return;
  if (released > 0) killed_at_.reset();
  when_awake([this, is_empty = released == 0] {
    run_core([&](Instant now, agent::Effects& e) {
      is_empty ? core_.on_all_workers_gone(now, e) : core_.on_workers_released(now, e);
    });
  });
}

void Node::stop_worker(Worker& worker, int signal, Duration grace) {
  const bool is_kill = signal == SIGKILL;
  const bool is_ready = worker.ready_at <= context_.event_queue.now();
  bool is_by_kill = is_kill || (is_ready && (worker.ignores_sigterm || worker.stops_in > grace));
  Duration after = is_kill || !is_ready ? Duration{} : is_by_kill ? grace : worker.stops_in;
  if (is_by_kill) after += prng_.up_to(kKillDuration);
  Instant end = context_.event_queue.now() + after;
  if (end >= worker.ends_at) return;
  worker.end.is_stopped_by_us = true;
  const int saved = is_disk_full() ? kCannotSave : kStoppedResumable;
  const int code = worker.is_saving ? saved : -signal;
  end_worker_at(worker, end, is_by_kill ? -SIGKILL : code);
}

// ---------------------------------------------------------------- workers' ends

void Node::fail_worker(size_t local_rank, int exit_code) {
  const bool is_there = local_rank < workers_.size();
  if (!is_there || workers_[local_rank].killed_at <= context_.event_queue.now()) return;
  end_worker_at(workers_[local_rank], context_.event_queue.now(), exit_code);
}

void Node::end_worker_at(Worker& worker, Instant when, int exit_code) {
  if (!worker.is_alive || worker.ends_at <= when) return;
  if (exit_code == -SIGKILL && worker.outlives_kill > Duration{}) {
    if (worker.killed_at <= when) return;
    kill_at(worker, when);
    when = when + worker.outlives_kill;
  }
  worker.ends_at = when;
  worker.end.exit_code = exit_code;
  context_.event_queue.at(when, [this] { reap(); });
}

// ---------------------------------------------------------------- workers that survive SIGKILL

void Node::stop_the_killed() {
  if (paused_at_) return;
  for (Worker& worker : workers_) {
    if (worker.is_alive && worker.killed_at <= context_.event_queue.now()) uncount(worker);
  }
}

void Node::watch_killed() {
  context_.event_queue.at(*killed_at_ + stuck_after_, [this] {
    if (!paused_at_) when_awake([this] { on_stuck_time(); });
  });
}

// No node waits for it any longer: neither this agent nor, after its end, the others (R2).
void Node::on_stuck_time() {
  const bool is_due = killed_at_ && context_.event_queue.now() >= *killed_at_ + stuck_after_;
  const bool is_any_killed = std::ranges::any_of(
      workers_, [](const Worker& w) { return w.is_alive && !w.is_asked && !w.is_released; });
  if (!is_due || !is_any_killed || !is_running()) return;
  const bool may_regroup = is_any_able_to_regroup();
  trace("SIGKILL has not ended its workers");
  run_core([this](Instant, agent::Effects& e) { core_.on_stuck("a worker of " + label(), e); });
  context_.checks.require(may_regroup || !is_running(),
                          "stuck: " + label() + " waits for a worker that SIGKILL does not end");
  killed_at_ = context_.event_queue.now();
  if (is_running()) watch_killed();
}

void Node::kill_workers(Duration within) {
  for (Worker& worker : workers_) {
    Instant end = context_.event_queue.now() + prng_.up_to(within);
    worker.is_excused = true;
    end_worker_at(worker, end, -SIGKILL);
  }
}

void Node::uncount(Worker& worker) {
  if (!std::exchange(worker.is_counted, false)) return;
  context_.checks.on_workers_gone(name_of(*assignment_), 1);
}

void Node::reap() {
  if (paused_at_) return;
  bool has_news = false;
  for (Worker& worker : workers_) {
    if (!worker.is_alive || worker.ends_at > context_.event_queue.now()) continue;
    has_news = true;
    worker.is_alive = false;
    uncount(worker);
    worker.end.ended_at = local_now();
    worker.end.ended_at_wall = WallTime{context_.event_queue.now().nanoseconds() / 1000};
    context_.trace.fold(static_cast<uint64_t>(worker.end.exit_code) ^ id().incarnation.value << 8);
    if (!worker.end.is_success() && !worker.end.is_stopped_by_us && !worker.is_excused) {
      context_.checks.on_true_failure(id().name, name_of(*assignment_));
    }
    trace("its worker " + std::to_string(worker.end.rank.value) + " " + describe_end(worker.end));
    when_awake([this, end = worker.end] {
      // Once the reaper process has killed, an agent counts no exit as a failure (R11).
      const bool is_excused = std::any_of(workers_.begin(), workers_.end(),
                                          [](const Worker& w) { return w.is_excused; });
      const bool is_to_be_told = !end.is_success() && !end.is_stopped_by_us && !is_excused &&
                                 core_.state() == agent::Agent::State::Running;
      if (is_to_be_told)
        context_.checks.on_reported_failure(id().incarnation, name_of(*assignment_));
      run_core([&](Instant now, agent::Effects& e) { core_.on_worker_exit(now, end, e); });
    });
  }
  if (!has_news) return;
  const bool has_saved = std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) {
    return !w.is_alive && w.end.exit_code == kStoppedResumable;
  });
  if (has_saved && live_workers() == 0) save_snapshot();
  if (context_.on_workers_changed) context_.on_workers_changed();
  report_end();
}

// ---------------------------------------------------------------- the reaper process

void Node::arm_reaper() {
  if (worker_lease_deadline_.is_never()) return;
  context_.event_queue.at(spec_.clock.truth(worker_lease_deadline_), [this] { on_reaper(); });
}

void Node::on_reaper() {
  if (paused_at_ || !is_running() || worker_lease_deadline_ > local_now()) return;
  const Duration late = local_now() - worker_lease_deadline_;
  if (!held_until_ && late >= limits::kReaperLateWakeup) return hold_workers();
  if (held_until_ && context_.event_queue.now() < *held_until_) return;
  held_until_.reset();
  worker_lease_deadline_ = Instant::never();
  has_reaper_killed_ = live_workers() > 0;
  if (has_reaper_killed_) trace("its reaper process kills the workers");
  kill_workers(kKillDuration);
}

// It was suspended with its host past the deadline. The workers do not count as live: they are
// stopped.
void Node::hold_workers() {
  if (live_workers() > 0) trace("its reaper process stops the workers for a while");
  held_until_ = context_.event_queue.now() + limits::kResumeAnswerTimeout;
  context_.event_queue.at(*held_until_, [this] { on_reaper(); });
  for (Worker& worker : workers_) worker.is_excused = true;
}

// The worker lease was extended: they run again.
void Node::end_hold() {
  held_until_.reset();
  for (Worker& worker : workers_) worker.is_excused = worker.is_excused && !worker.is_alive;
  if (live_workers() > 0) trace("its workers go on");
  count_live();
}

void Node::count_live() {
  int64_t live = 0;
  for (Worker& worker : workers_) {
    if (!worker.is_alive) continue;
    worker.is_counted = worker_lease_deadline_ > local_now() && !worker.is_excused &&
                        !worker.has_left_group && worker.killed_at > context_.event_queue.now();
    live += worker.is_counted ? 1 : 0;
  }
  if (live > 0) context_.checks.on_workers_live(name_of(*assignment_), live);
}

// ---------------------------------------------------------------- faults

void Node::kill(bool is_reset) {
  if (!is_running() || paused_at_) return;
  trace("its agent is killed");
  is_alive_ = false;
  context_.network.end(program_, is_reset);
  if (lead_ != nullptr) lead_->kill(is_reset);
  if (candidate_) candidate_->end();
  kill_workers(kDeathTakes);
}

// Everything on the host ends at once without a message. The caller ends its connections.
void Node::lose_power() {
  if (!is_running()) return;
  trace("its host loses power");
  is_alive_ = false;
  if (lead_ != nullptr) lead_->lose_power();
  if (candidate_) candidate_->end();
  paused_at_.reset();
  for (Worker& worker : workers_) {
    if (worker.is_alive) uncount(worker);
    worker.is_alive = false;
  }
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
  paused_at_ = context_.event_queue.now();
  context_.network.cut_off(spec_.host);
  for (Worker& worker : workers_) {
    if (worker.is_alive) uncount(worker);
  }
}

void Node::thaw() {
  if (!is_frozen_ || !is_alive_) return;
  trace("runs again");
  is_frozen_ = false;
  if (candidate_) candidate_->set_frozen(false);
  if (paused_at_) {
    const Instant paused_at = *std::exchange(paused_at_, std::nullopt);
    Duration stood = context_.event_queue.now() - paused_at;
    if (killed_at_) {
      *killed_at_ = *killed_at_ + stood;
      watch_killed();
    }
    context_.network.mend_host(spec_.host);
    for (Worker& worker : workers_) {
      if (!worker.is_alive) continue;
      if (worker.is_asked) ask_to_regroup(static_cast<size_t>(worker.end.local_rank.value));
      Instant before = std::exchange(worker.ends_at, Instant::never());
      if (worker.killed_at.is_never()) {
        end_worker_at(worker, before + stood, worker.end.exit_code);
      } else {
        worker.ends_at = before + stood;
        context_.event_queue.at(worker.ends_at, [this] { reap(); });
        if (worker.killed_at > paused_at) kill_at(worker, worker.killed_at + stood);
      }
    }
    count_live();  // none past the deadline: the reaper process stops them as soon as it runs
    on_reaper();
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
    must_leave(connection, "who told it that the job is led from elsewhere");
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
