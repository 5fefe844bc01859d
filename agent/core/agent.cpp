#include "agent/core/agent.hpp"

#include <algorithm>
#include <utility>

#include "agent/core/join_texts.hpp"
#include "agent/core/restart_budget.hpp"
#include "agent/core/stop_texts.hpp"
#include "common/check.hpp"
#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/election.hpp"
#include "common/limits/faults.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/signals.hpp"
#include "rendezvous/protocol/sanitize.hpp"

namespace cpprun::agent {
namespace {

Endpoint endpoint_of(const control::Standby& standby) {
  return Endpoint{standby.address, static_cast<uint16_t>(standby.port)};
}

// A person at a keyboard sends these. Schedulers repeat SIGTERM within milliseconds, and a terminal
// that closes adds SIGHUP: the repetition is no second request.
bool is_urgent(int signal) { return signal == kSigInt || signal == kSigQuit; }

}  // namespace

void Agent::start(Instant now, Effects& effects) {
  join_deadline_ = now + options_.join_timeout;
  effects.push_back(ReservePort{});
  if (options_.facts.has_snapshot_dir) effects.push_back(ScanSnapshots{});
  if (check_.begin()) effects.push_back(RunNodeCheck{});
}

bool Agent::has_workers() const {
  return state_ == State::Running || state_ == State::Stopping || state_ == State::Leaving ||
         state_ == State::Draining;
}

// ---------------------------------------------------------------- connection

control::ReportedPhase Agent::reported_phase() const {
  // The agent sends Failed or Stopped right after registering; until then the round still runs.
  const bool is_unreported = unreported_failure_ || is_stopped_unreported();
  const bool is_in_round = has_workers() || state_ == State::Starting || state_ == State::Saved;
  if (is_unreported || is_in_round) return control::ReportedPhase::Running;
  if (state_ == State::Stopped) return control::ReportedPhase::Stopped;
  return state_ == State::Done ? control::ReportedPhase::Done : control::ReportedPhase::Idle;
}

void Agent::on_connected(Instant now, std::vector<std::string> addresses, const Endpoint& peer,
                         Effects& effects) {
  CPPRUN_CHECK(!is_connected_);
  is_connected_ = true;
  peer_ = peer;
  ignores_connection_ = is_registered_ = false;
  last_message_at_ = now;
  control::Hello hello = options_.hello;
  hello.connection += connections_++;
  control::Register facts = options_.facts;
  facts.addresses = std::move(addresses);
  facts.reserved_port = port_;
  facts.reported_phase = reported_phase();
  facts.round = assignment_.round;
  facts.term = term_;
  facts.is_draining = state_ == State::Draining || state_ == State::Saved;
  facts.snapshots = snapshots_;
  facts.snapshot_port = snapshot_port_;
  facts.control_port = control_port_;
  if (assignment_.round > RoundNumber()) facts.assignment = assignment_;
  // The process that listens at our coordinator's address knows whether it is that coordinator.
  facts.has_evidence = has_evidence_ || led_by_ == peer;
  facts.knows_standby = knows_standby_;
  facts.has_worker_lease = has_worker_lease(now);
  facts.charged = charged_;
  facts.is_stop_requested = is_drained_;
  facts.decided = job_result_;
  if (host_records_.revision > 0) facts.host_records = host_records_;
  facts.node_check = check_.result();
  effects.push_back(SendMessage{hello});
  effects.push_back(SendMessage{facts});
  if (is_leased()) ping(now, effects);
  if (unreported_failure_) effects.push_back(SendMessage{*unreported_failure_});
  if (unreported_failure_) send_stopped(effects);
}

void Agent::on_disconnected(Instant now, Effects& effects) {
  is_connected_ = false;
  ping_at_ = Instant::never();
  worker_lease_.on_disconnected();
  resume_wait_.end();
  if (state_ == State::Ended) return;
  if (is_dismissed_) effects.push_back(Disconnect{false});
  if (job_result_) return finish_job(effects);
  // A disconnect does not restart a running join timeout. If it did, a peer that accepts and hangs
  // up would keep the agent waiting for ever.
  bool is_new_wait = is_spare_ || (state_ == State::Done && join_deadline_.is_never());
  if (is_new_wait && !has_workers()) join_deadline_ = now + options_.join_timeout;
  is_spare_ = false;
  effects.push_back(LogEvent{LogEvent::Level::Info, "the connection to the coordinator broke"});
}

void Agent::on_message(Instant now, const control::CoordinatorMessage& message, Effects& effects) {
  if (state_ == State::Ended || ignores_connection_) return;
  last_message_at_ = now;
  std::visit([&](const auto& m) { on(now, m, effects); }, control::sanitize(message));
}

void Agent::on(Instant now, const control::Registered& message, Effects& effects) {
  if (message.term < term_) {  // the job has had a newer coordinator since (R13)
    ignores_connection_ = true;
    if (!std::exchange(has_warned_, true))
      effects.push_back(LogEvent{LogEvent::Level::Warning, kOlderTermText});
    effects.push_back(Reconnect{true});
    return;
  }
  term_ = message.term;
  has_warned_ = false;
  led_by_ = peer_;
  is_registered_ = true;
  has_evidence_ = false;
  is_standby_ = message.is_standby && assignment_.standby;
  bool was_leased = is_leased();
  heartbeat_ = message.heartbeat;
  lease_ = message.lease;
  // The other nodes' workers may still run for long.
  if (state_ == State::Done) join_deadline_ = Instant::never();
  if (is_leased() && !was_leased) ping(now, effects);
  if (was_leased && !is_leased()) {  // the coordinator is in this process now
    ping_at_ = Instant::never();
    if (needs_worker_lease()) effects.push_back(SetWorkerLease{Instant::never()});
  }
}

// Remembers the count for a later coordinator, which starts without it.
void Agent::on(Instant, const control::FaultPermit& message, Effects&) {
  std::vector<int64_t>& counts = options_.facts.fault_counts;
  const bool is_sane =
      message.fault >= 0 && message.fault < static_cast<int64_t>(limits::kFaultsPerPlan);
  if (!message.is_permitted || !is_sane) return;
  const auto index = static_cast<size_t>(message.fault);
  if (counts.size() <= index) counts.resize(index + 1);
  counts[index] = std::max(counts[index], message.count);
}

// ---------------------------------------------------------------- the worker lease

void Agent::ping(Instant now, Effects& effects) {
  effects.push_back(SendMessage{control::Ping{worker_lease_.on_ping_sent(now)}});
  ping_at_ = now + heartbeat_;
}

// While etcd does not answer, the coordinator issues only the rest of its own lease. An early ping
// extends the worker lease as soon as etcd answers again (R18).
void Agent::ping_sooner(Instant now) {
  if (!options_.is_led_by_election || !is_led(now)) return;
  const Duration half = (worker_lease_.sigterm_at() - now) / 2;
  ping_at_ = std::min(ping_at_, now + std::max(half, limits::kPingIntervalMin));
}

void Agent::on(Instant now, const control::Pong& message, Effects& effects) {
  // The agent was frozen while this pong waited in its socket. The reaper process has killed the
  // workers at the deadline, and a late pong cannot bring them back (R11).
  const bool is_late = is_leased() && now >= worker_lease_.deadline();
  if (state_ == State::Running && is_late && !awaits_answer(now))
    stop_past_worker_lease(Duration{}, effects);
  const bool is_longer = worker_lease_.on_pong(message.seq, message.worker_lease);
  if (is_longer && now < worker_lease_.deadline()) resume_wait_.end();
  ping_sooner(now);
  if (!is_longer || !is_leased()) return;
  const bool may_run = needs_worker_lease() && !lease_killed_;  // a later deadline ends SIGSTOP
  if (may_run) effects.push_back(SetWorkerLease{worker_lease_.deadline()});
  if (state_ == State::Starting) start_if_leased(now, effects);
}

// ---------------------------------------------------------------- rounds

void Agent::on(Instant now, const control::RankAssignment& message, Effects& effects) {
  bool may_start = state_ == State::Joining || state_ == State::Stopped;
  if (!may_start || message.round <= assignment_.round || message.term < term_) return;  // R1
  if (const std::string wrong = wrong_ranks_text(message, options_.facts.nproc); !wrong.empty()) {
    effects.push_back(SendMessage{control::Leave{wrong}});
    effects.push_back(Disconnect{false});
    return finish(Finish::error(wrong), effects);
  }
  // Only a coordinator in this process believes what the agent has read from --state-dir.
  if (assignment_.round == RoundNumber()) host_records_ = {};
  assignment_ = message;
  exits_.begin_round();
  resume_wait_ = ResumeWait();
  unreported_failure_.reset();  // that round is over
  is_exit_awaited_ = false;
  is_spare_ = false;
  is_drained_ = false;
  fell_back_ = false;
  charged_ = control::RestartCharge::None;
  held_failure_.reset();
  lost_.clear();
  files_ = Files::None;
  state_ = State::Starting;
  is_standby_ = assignment_.standby && assignment_.standby->node == options_.hello.node.incarnation;
  if (!is_leading_ && is_leased() && !options_.is_led_by_election) {
    const bool is_elsewhere = assignment_.standby && !is_standby_;
    effects.push_back(is_elsewhere ? Routes{{endpoint_of(*assignment_.standby)}} : Routes{});
  }
  if (options_.facts.has_snapshot_dir)
    effects.push_back(ServeSnapshots{assignment_.snapshot_secret});
  is_fetching_ = assignment_.resume && !assignment_.resume->source_address.empty();
  if (is_fetching_) {
    join_deadline_ = Instant::never();  // the fetch has time limits of its own
    effects.push_back(FetchSnapshot{*assignment_.resume, assignment_.snapshot_secret});
  }
  if (options_.facts.keeps_replicas) {
    effects.push_back(KeepReplicas{assignment_.replicas_of, assignment_.snapshot_secret});
  }
  is_fetching_replicas_ = options_.facts.keeps_replicas && assignment_.replicas_at;
  if (is_fetching_replicas_) {
    join_deadline_ = Instant::never();
    effects.push_back(FetchReplicas{*assignment_.replicas_at, assignment_});
  }
  start_if_leased(now, effects);
}

// Workers may run only under a worker lease (R6). The first pong may come shortly after the rank
// assignment. The lease is checked again when the files are ready, because it may have ended.
void Agent::start_if_leased(Instant now, Effects& effects) {
  if (state_ != State::Starting || is_fetching_ || is_fetching_replicas_ ||
      survivors_.are_dropped() || files_ == Files::Awaited ||
      (is_leased() && worker_lease_.sigterm_at() <= now))
    return;
  if (files_ == Files::None) {
    files_ = Files::Awaited;
    join_deadline_ = Instant::never();  // the preparation has a time limit of its own
    const int64_t attempt = assignment_.restart_count + assignment_.hang_restarts;
    return effects.push_back(PrepareRound{attempt, assignment_.round});
  }
  state_ = State::Running;
  join_deadline_ = Instant::never();
  lease_killed_ = false;
  survivors_.on_round_started();
  effects.push_back(SetWorkerLease{is_leased() ? worker_lease_.deadline() : Instant::never()});
  effects.push_back(StartWorkers{assignment_});
}

void Agent::on_prepared(Instant now, Effects& effects) {
  if (files_ != Files::Awaited) return;  // a stop came first
  files_ = Files::Ready;
  join_deadline_ = now + options_.join_timeout;
  start_if_leased(now, effects);
}

void Agent::on_start_failed(Instant now, const Error& error, Effects& effects) {
  if (state_ != State::Running) {  // a stop came first, and no worker runs
    effects.push_back(LogEvent{LogEvent::Level::Warning, error.text});
    if (has_workers()) on_all_workers_gone(now, effects);
    return;
  }
  effects.push_back(LogEvent{LogEvent::Level::Info, error.text});  // the failure summary shows it
  effects.push_back(SetWorkerLease{Instant::never()});
  const bool is_fatal = error.kind == ErrorKind::BadValue;
  unreported_failure_ = control::Failed{assignment_.round, WorkerExit{}, is_fatal, error.text};
  effects.push_back(SendMessage{*unreported_failure_});
  become_stopped(now, effects);
}

void Agent::stop_after_failure(std::optional<LocalRank> hung, Effects& effects) {
  const bool may_stay = survivors_.may_stay(assignment_, hung.has_value());
  return may_stay ? stop_but_survivors(hung, effects)
                  : stop_workers(options_.stop_grace, false, effects);
}

// Other nodes may form a round without this node from now on. This is no worker's failure, and no
// restart budget is charged.
void Agent::stop_past_worker_lease(Duration grace, Effects& effects) {
  effects.push_back(LogEvent{LogEvent::Level::Warning, kPastLeaseText});
  exits_.excuse();
  stop_workers(grace, false, effects);
}

void Agent::on_worker_failed(Instant now, const WorkerExit& end, Effects& effects) {
  if (is_drained_ || state_ != State::Running) return;
  // The agent was frozen, and the reaper process killed the workers (R11).
  if (is_leased() && now >= worker_lease_.deadline())
    return stop_past_worker_lease(Duration{}, effects);
  // Stop the other workers at once, without waiting for the coordinator. A worker that exits with
  // kStoppedResumable shows that another node drains; the coordinator's Stop is on its way, and the
  // other workers here save as well.
  is_exit_awaited_ = true;
  const bool is_drain = end.exit_code == kStoppedResumable;
  is_drain ? stop_workers(options_.stop_grace, true, effects)
           : stop_after_failure(std::nullopt, effects);
}

void Agent::on_worker_exit(Instant now, const WorkerExit& end, Effects& effects) {
  if (survivors_.exist() && !has_workers()) return;  // between two rounds
  exits_.add(end);
  if (is_drained_) return on_failed_save(end, effects);
  if (end.is_success()) return;
  on_worker_failed(now, end, effects);
  if (!std::exchange(is_exit_awaited_, false)) return;
  held_failure_ = FirstFailure{end, assignment_, survivors_.are_asked()};
  if (end.exit_code != kStoppedResumable) flush_held_failure(effects);
  unreported_failure_ = control::Failed{assignment_.round, for_the_wire(end), false};
  unreported_failure_->sent_at = now;
  effects.push_back(SendMessage{*unreported_failure_});
}

void Agent::on_hang(Instant now, const WorkerExit& hung, Effects& effects) {
  if (state_ != State::Running) return;  // the round is being stopped for another reason
  if (is_leased() && now >= worker_lease_.deadline())
    return stop_past_worker_lease(Duration{}, effects);
  exits_.on_hang(hung);
  stop_after_failure(hung.local_rank, effects);
  effects.push_back(FirstFailure{hung, assignment_, survivors_.are_asked()});
  unreported_failure_ = control::Failed{assignment_.round, for_the_wire(hung), false};
  effects.push_back(SendMessage{*unreported_failure_});
}

void Agent::on_all_workers_gone(Instant now, Effects& effects) {
  if (state_ == State::Ended) return;  // the coordinator refused this agent while workers ran
  if (survivors_.exist() && !has_workers()) return on_survivors_gone(now, effects);
  survivors_.on_gone();
  if (!is_drained_) exits_.keep_if_failed();
  effects.push_back(SetWorkerLease{Instant::never()});
  switch (state_) {
    case State::Running:
      state_ = State::Done;
      if (!is_connected_) join_deadline_ = now + options_.join_timeout;
      effects.push_back(SendMessage{control::Done{assignment_.round}});
      return;
    case State::Stopping:
      if (is_finishing_) {
        state_ = State::Stopped;
        return finish_job(effects);
      }
      become_stopped(now, effects);
      return;
    case State::Leaving: return leave(effects);
    case State::Draining:
      state_ = State::Saved;
      if (!options_.facts.has_snapshot_dir) return leave_after_drain(effects);
      leave_at_ = now + limits::kFinalScanTimeout;
      effects.push_back(ScanSnapshots{});
      return;
    default: CPPRUN_CHECK(false);
  }
}

void Agent::on_workers_released(Instant now, Effects& effects) {
  if (state_ != State::Stopping) return;
  if (!is_drained_) exits_.keep_if_failed();
  exits_.on_released();
  survivors_.on_released();
  become_stopped(now, effects);
  if (is_finishing_) finish_job(effects);
}

void Agent::on_survivors_gone(Instant now, Effects& effects) {
  survivors_.on_gone();
  effects.push_back(SetWorkerLease{Instant::never()});
  is_finishing_ ? finish_job(effects) : start_if_leased(now, effects);
}

// A process that survives SIGKILL runs no code of its own any more, so the other nodes may form a
// new round (R2). It still holds its resources (GPU, files, ports), so this node starts no worker
// beside it.
void Agent::on_stuck(const std::string& what, Effects& effects) {
  if (state_ == State::Ended) return;
  // The others may form a round as soon as this node leaves (R2): its survivors end before.
  if (survivors_.are_asked() || survivors_.are_held()) return survivors_.drop(Duration{}, effects);
  const bool has_all_ends = static_cast<int64_t>(exits_.size()) >= options_.facts.nproc;
  if (!is_drained_) exits_.keep_if_failed();
  const std::string why = "it is unusable: SIGKILL did not end " + what;
  effects.push_back(SendMessage{control::Leave{why, has_all_ends && has_saved(), true}});
  effects.push_back(Disconnect{false});
  finish(Finish{Finish::How::Unusable, signal_, what, {}, 0}, effects);
}

// The agent sends Stopped with the next round's port and the newest snapshots, so it collects both
// first.
void Agent::become_stopped(Instant now, Effects& effects) {
  state_ = State::Stopped;
  join_deadline_ = now + options_.join_timeout;
  wants_port_for_stopped_ = true;
  wants_scan_for_stopped_ = options_.facts.has_snapshot_dir;
  effects.push_back(ReservePort{});
  if (wants_scan_for_stopped_) effects.push_back(ScanSnapshots{});
  wants_check_for_stopped_ = check_.is_on();
  if (check_.begin()) effects.push_back(RunNodeCheck{});
}

// Later, if a part of the message is not known yet.
void Agent::send_stopped(Effects& effects) {
  if (is_stopped_unreported() || state_ != State::Stopped) return;
  effects.push_back(SendMessage{control::Stopped{assignment_.round, port_, snapshots_, has_saved(),
                                                 is_drained_ ? std::nullopt : exits_.own_failure(),
                                                 exits_.last_step(), check_.result()}});
}

// Without another node nothing can come of a job whose node is bad.
void Agent::on_node_checked(Instant now, const std::string& why, Effects& effects) {
  const bool is_news = check_.on_result(now, why);
  if (state_ == State::Ended || is_leaving()) return;
  const bool is_alone = options_.facts.job_spec.max_nodes == 1;
  if (!why.empty() && is_alone && !has_workers()) {
    effects.push_back(SendMessage{control::Leave{"the node check failed"}});
    effects.push_back(Disconnect{false});
    return finish(Finish::error("the node check (--node-check) failed: " + why), effects);
  }
  if (is_news) effects.push_back(LogEvent{LogEvent::Level::Warning, check_.text()});
  if (std::exchange(wants_check_for_stopped_, false)) return send_stopped(effects);
  if (is_connected_) effects.push_back(SendMessage{check_.result()});
}

void Agent::on(Instant, const control::Refused& message, Effects& effects) {
  if (job_result_) return finish_job(effects);  // it needs the coordinator no more
  const bool is_elsewhere = message.is_other_job && options_.has_further_ports;
  if (is_elsewhere) return effects.push_back(Reconnect{true});
  effects.push_back(Disconnect{has_workers()});
  finish(Finish::error(refused_text(message, options_.hello, options_.endpoint)), effects);
}

// ---------------------------------------------------------------- waiting, hosting, giving up

void Agent::on(Instant now, const control::Wait& message, Effects& effects) {
  const bool is_delayed = message.delay > Duration{};
  const bool is_new_wait = is_delayed || (is_spare_ && !message.is_spare);
  if (is_new_wait && !has_workers()) join_deadline_ = now + message.delay + options_.join_timeout;
  is_spare_ = message.is_spare;
  knows_standby_ = message.standby || (knows_standby_ && message.awaits_redirect);
  const LogEvent event = wait_event(message, std::exchange(last_wait_, message).why);
  const bool is_left_out = message.is_spare || message.is_excluded;
  if (is_left_out && survivors_.are_held()) survivors_.drop(options_.stop_grace, effects);
  if (message.standby && !is_leading_ && is_leased()) {
    effects.push_back(Routes{{endpoint_of(*message.standby)}});
  }
  effects.push_back(event);
}

// What a node that was in no round yet waits for; "" otherwise.
std::string Agent::waited_for() const {
  if (state_ != State::Joining || assignment_.round != RoundNumber()) return "";
  return waiting_text(is_connected_, last_wait_.why);
}

// An agent that was never registered may host its job at once when no process listens at the
// endpoint. One that was registered waits until every lease that its coordinator can have issued
// has ended (I1), and never hosts while another node is the standby.
bool Agent::may_host(Instant now) const {
  if (state_ != State::Joining || is_connected_ || knows_standby_ || job_result_) return false;
  if (assignment_.round != RoundNumber()) return false;
  if (term_ == Term()) return true;
  return is_leased() && now >= last_message_at_ + lease_;
}

void Agent::give_up_joining(Effects& effects) {
  std::string text = join_timeout_text({options_.join_timeout, is_connected_, last_wait_.why,
                                        last_wait_.missing_nodes, lost_, state_ == State::Done});
  effects.push_back(SendMessage{control::Leave{"the join timeout was reached"}});
  effects.push_back(Disconnect{false});
  Finish how{
      Finish::How::Error, 0, std::move(text), {}, lost_.empty() ? 0 : assignment_.restart_count};
  how.lost = lost_;
  finish(std::move(how), effects);
}

// ---------------------------------------------------------------- the end of a round

void Agent::on(Instant now, const control::Stop& message, Effects& effects) {
  if (message.round != assignment_.round) return;
  const bool is_drain = control::is_requested(message.cause);
  const bool is_known =
      message.cause == control::StopCause::Failure || message.cause == control::StopCause::Snapshot;
  if (is_known) unreported_failure_.reset();
  if (message.cause == control::StopCause::NodeLost) lost_ = message.why;
  if (message.charged != control::RestartCharge::None) charged_ = message.charged;
  if (is_drain) {
    is_drained_ = true;
    held_failure_.reset();
  } else if (held_failure_) {
    flush_held_failure(effects);
    effects.push_back(EndSaving{kSigTerm});
  }
  switch (state_) {
    case State::Starting:
      effects.push_back(stop_event(message, assignment_, false));
      cancel_start(effects);
      become_stopped(now, effects);
      return;
    case State::Done:
      effects.push_back(stop_event(message, assignment_, true));
      become_stopped(now, effects);
      return;
    case State::Running: {
      const bool may_stay = survivors_.may_stay(assignment_, message);
      effects.push_back(stop_event(message, assignment_, false, may_stay));
      if (may_stay) return stop_but_survivors(std::nullopt, effects);
      stop_workers(options_.stop_grace, is_drain, effects);
      return;
    }
    case State::Stopping:  // after a failure here
      if (is_drain && survivors_.are_asked() && !survivors_.may_stay(assignment_, message))
        survivors_.drop(options_.stop_grace, effects);
      return;
    case State::Stopped: return send_stopped(effects);
    default: return;
  }
}

// ---------------------------------------------------------------- the end of the run

void Agent::on(Instant, const control::JobResult& message, Effects& effects) {
  job_result_ = message;
  if (!message.is_resumable) flush_held_failure(effects);
  effects.push_back(SendMessage{control::Ack{message.is_success}});
  cancel_start(effects);
  if (state_ == State::Starting) state_ = State::Stopped;  // no worker has been started
  if (state_ == State::Running)
    stop_workers(options_.stop_grace, false, effects);  // the job ended without this node
}

// The job has a result. Workers that still run are stopped before the agent ends (R4).
void Agent::finish_job(Effects& effects) {
  is_finishing_ = true;
  if (is_leaving()) return;  // the drain or the signal ends the agent
  if (state_ == State::Running) stop_workers(options_.stop_grace, false, effects);
  if (has_workers() || survivors_.are_dropped()) return;
  if (survivors_.are_held()) return survivors_.drop(options_.stop_grace, effects);
  effects.push_back(Disconnect{false});
  finish(Finish{}, effects);
}

// `how.how` Success stands for the coordinator's result, if there is one (R9).
void Agent::finish(Finish how, Effects& effects) {
  if (job_result_ && how.how == Finish::How::Success && !job_result_->is_success) {
    how.how = job_result_->is_resumable ? Finish::How::Stopped : Finish::How::Failure;
    how.text = job_result_->failure_summary;
  }
  if (!snapshots_.empty()) how.snapshot = snapshots_.front();
  how.ends = exits_.last_failed_round();
  add_restarts(assignment_, job_result_, how);
  if (how.how == Finish::How::Failure && !job_result_->root_cause) how.lost = lost_;
  how.signal = signal_;
  how.job_result = job_result_;
  how.ran_no_worker = assignment_.round == RoundNumber();
  state_ = State::Ended;
  effects.push_back(std::move(how));
}

void Agent::on_signal(Instant now, int signal, Effects& effects) {
  if (state_ == State::Ended) return;
  if (is_leaving()) {
    if (is_urgent(signal)) leave_at_once(effects);
    return;
  }
  signal_ = signal;
  signalled_at_ = now;
  if (signal == kSigTerm) return on_request(now, effects);
  if (!has_workers() && !survivors_.exist()) return leave(effects);
  state_ = State::Leaving;
  survivors_.on_gone();  // its workers are ordinary ones now
  effects.push_back(StopWorkers{signal, options_.stop_grace});
}

// The first SIGTERM.
void Agent::on_request(Instant now, Effects& effects) {
  if (state_ == State::Running) return drain(effects);
  // the workers save already, because another node drains
  if (state_ == State::Stopping && is_drained_ && !survivors_.are_asked()) {
    state_ = State::Draining;
    effects.push_back(SendMessage{control::Draining{assignment_.round}});
  } else if (state_ == State::Stopping || survivors_.exist()) {
    // The workers have got SIGTERM already, but for those that can regroup.
    state_ = State::Leaving;
    if (survivors_.are_asked() || survivors_.are_held()) {
      effects.push_back(StopWorkers{kSigTerm, options_.stop_grace});
    }
    survivors_.on_gone();
  } else if (state_ == State::Stopped && is_drained_) {
    leave_stopped(now, effects);
  } else {
    leave(effects);
  }
}

void Agent::leave_at_once(Effects& effects) {
  if (state_ == State::Saved) return leave_after_drain(effects);
  effects.push_back(StopWorkers{kSigKill, Duration{}, false, true});
}

// No worker runs here: SIGTERM loses no work, but that of survivors of a drain.
void Agent::leave(Effects& effects) {
  const bool is_failing = ends_job(assignment_, charged_, unreported_failure_);
  const bool loses_nothing = signal_ == kSigTerm && !is_failing && (!is_drained_ || has_saved());
  effects.push_back(SendMessage{
      control::Leave{loses_nothing ? "asked to stop" : "ended by a signal", loses_nothing}});
  effects.push_back(Disconnect{false});
  if (signal_ == kSigTerm && job_result_) return finish(Finish{}, effects);
  Finish how;
  how.how = loses_nothing ? Finish::How::Stopped : Finish::How::Signal;
  how.text = waited_for();
  finish(std::move(how), effects);
}

// An admin command. Its repetition changes nothing; a real signal does.
void Agent::on(Instant now, const control::ShutdownRequest& message, Effects& effects) {
  if (is_leaving() || job_result_) return;
  effects.push_back(LogEvent{LogEvent::Level::Status, message.why});
  on_signal(now, message.saves ? kSigTerm : kSigInt, effects);
}

// The coordinator gets Draining before any worker exits, so that no exit counts as a failure.
void Agent::drain(Effects& effects) {
  state_ = State::Draining;
  is_drained_ = true;
  effects.push_back(SendMessage{control::Draining{assignment_.round}});
  effects.push_back(StopWorkers{kSigTerm, options_.stop_grace, true});
}

// A snapshot needs all workers: when one has failed, the others cannot complete it.
void Agent::on_failed_save(const WorkerExit& end, Effects& effects) {
  const bool is_saving = state_ == State::Draining || state_ == State::Stopping;
  if (!is_saving || end.is_success() || end.exit_code == kStoppedResumable) return;
  effects.push_back(EndSaving{kSigTerm});
}

// This node gets SIGTERM after a drain of another node has ended its workers.
void Agent::leave_stopped(Instant now, Effects& effects) {
  state_ = State::Saved;
  leave_at_ = now + limits::kFinalScanTimeout;
  wants_port_for_stopped_ = wants_check_for_stopped_ = false;
  if (!std::exchange(wants_scan_for_stopped_, false)) leave_after_drain(effects);
}

void Agent::leave_after_drain(Effects& effects) {
  const bool loses_nothing = has_saved() && exits_.can_resume();
  effects.push_back(SendMessage{control::Leave{"asked to stop", has_saved()}});
  effects.push_back(Disconnect{false});
  Finish how;
  how.how = loses_nothing ? Finish::How::Stopped : Finish::How::Signal;
  how.has_saved = loses_nothing && exits_.have_saved();
  if (loses_nothing) how.stays_until = signalled_at_ + options_.stop_grace;
  finish(std::move(how), effects);
}

// ---------------------------------------------------------------- snapshots

void Agent::on_snapshots(Instant, std::vector<control::SnapshotName> snapshots, Effects& effects) {
  const bool is_new = snapshots != snapshots_;
  snapshots_ = std::move(snapshots);
  if (state_ == State::Saved) return leave_after_drain(effects);
  if (std::exchange(wants_scan_for_stopped_, false)) return send_stopped(effects);
  if (is_new && is_connected_) effects.push_back(SendMessage{newest_snapshots()});
}

void Agent::on_fell_back(int64_t step, Effects& effects) {
  if (!assignment_.resume || std::exchange(fell_back_, true)) return;
  const int64_t chosen = assignment_.resume->snapshot.step;
  effects.push_back(LogEvent{LogEvent::Level::Warning, fell_back_text(chosen, step)});
  if (is_connected_) effects.push_back(SendMessage{newest_snapshots()});
}

// The round ends before its workers have started.
void Agent::cancel_start(Effects& effects) {
  files_ = Files::None;
  const bool is_fetching = std::exchange(is_fetching_, false);
  const bool is_seeking = std::exchange(is_fetching_replicas_, false);
  if (is_fetching || is_seeking) effects.push_back(DropFetch{});
}

void Agent::on_fetch_failed(Instant now, const Error& error, bool is_damaged, Effects& effects) {
  if (!std::exchange(is_fetching_, false)) return;
  cancel_start(effects);  // also FetchReplicas
  effects.push_back(LogEvent{LogEvent::Level::Warning, error.text});
  unreported_failure_ = control::Failed{assignment_.round, WorkerExit{}, false, error.text,
                                        is_damaged ? assignment_.resume->snapshot.id : ""};
  effects.push_back(SendMessage{*unreported_failure_});
  become_stopped(now, effects);
}

// ---------------------------------------------------------------- a dead coordinator, etcd

// Under a worker lease no coordinator has counted this node as lost (I1), and it has not sent
// Stopped: so there is no later round.
bool Agent::has_worker_lease(Instant now) const {
  const bool is_in_round =
      state_ == State::Starting || state_ == State::Running || state_ == State::Stopping;
  return is_in_round && is_leased() && now < worker_lease_.deadline();
}

// While the worker lease holds, no other node has formed a round without this one, and no other
// standby was chosen (R16).
void Agent::on_refused(Instant now, const std::vector<Endpoint>& places, Effects& effects) {
  const bool is_ours = std::find(places.begin(), places.end(), led_by_) != places.end();
  if (state_ == State::Ended || is_leading_ || is_connected_ || term_ == Term() || !is_ours) {
    return;
  }
  has_evidence_ = true;
  const bool is_going = job_result_ || is_leaving();
  const bool has_lease = is_leased() && now < worker_lease_.deadline();
  if (!is_standby_ || !has_lease || is_going) return;
  is_leading_ = true;
  effects.push_back(LogEvent{LogEvent::Level::Warning,
                             "the coordinator is dead; leading the job from this node"});
  effects.push_back(
      BecomeCoordinator{Term(term_.value + 1), *assignment_.standby, assignment_.job_key});
}

// The process at the job's endpoint knows the address of the coordinator (R17).
void Agent::on(Instant, const control::Redirect& message, Effects& effects) {
  const bool is_blank = assignment_.round == RoundNumber();
  if (is_leading_ || (message.term < term_ && !is_blank)) return;
  if (is_blank) term_ = Term();  // that of a coordinator that never led the job
  ignores_connection_ = knows_standby_ = true;
  effects.push_back(Routes{{Endpoint{message.address, static_cast<uint16_t>(message.port)}}, true});
  effects.push_back(Reconnect{});
}

void Agent::on_led_from(const Endpoint& place, Effects& effects) {
  if (state_ == State::Ended) return;
  effects.push_back(Routes{{place}, true});
  if (!is_connected_ || peer_ == place) return;
  ignores_connection_ = true;
  effects.push_back(Reconnect{});
}

// ---------------------------------------------------------------- time

// This agent was suspended, and perhaps the others with it. Only an answer on the connection from
// before proves that the node does not count as lost.
bool Agent::awaits_answer(Instant now) {
  const bool may_wait = state_ == State::Running && is_registered_ && !ignores_connection_;
  if (!may_wait || !is_connected_ || !is_leased()) return false;
  if (now >= worker_lease_.sigterm_at()) resume_wait_.begin_if_late(now, next_deadline());
  return resume_wait_.is_open(now);
}

void Agent::on_time(Instant now, Effects& effects) {
  if (state_ == State::Ended) return;
  // After a freeze several deadlines may have passed: workers past the lease first (R11).
  const bool awaits = awaits_answer(now);
  if (!awaits && state_ == State::Running && is_leased() && now >= worker_lease_.sigterm_at()) {
    stop_past_worker_lease(std::max(Duration{}, worker_lease_.deadline() - now), effects);
  }
  if (survivors_.are_held() && is_leased() && now >= worker_lease_.sigterm_at()) {
    lease_killed_ = true;
    survivors_.drop(std::max(Duration{}, worker_lease_.deadline() - now), effects);
  }
  if (is_past_worker_lease(now)) {
    lease_killed_ = true;
    effects.push_back(StopWorkers{kSigKill, Duration{}});
  }
  if (now >= ping_at_) ping(now, effects);
  if (now >= node_lease_ends() && !awaits) {
    // The host or its network may be gone; TCP alone would try for many minutes.
    last_message_at_ = now;
    effects.push_back(
        LogEvent{LogEvent::Level::Info, "the coordinator is silent; connecting again"});
    effects.push_back(Reconnect{!is_registered_});
  }
  if (state_ == State::Saved && now >= leave_at_) return leave_after_drain(effects);
  const bool may_check = state_ == State::Joining || state_ == State::Stopped;
  if (check_.is_due(now) && may_check && check_.repeat()) effects.push_back(RunNodeCheck{});
  if (now >= join_deadline_ && !is_spare_) give_up_joining(effects);
}

Instant Agent::next_deadline() const {
  if (state_ == State::Ended) return Instant::never();
  Instant next = ping_at_;
  if (!is_spare_) next = std::min(next, join_deadline_);
  if (state_ == State::Saved) next = std::min(next, leave_at_);
  if (state_ == State::Joining || state_ == State::Stopped) next = std::min(next, check_.next());
  // A registered agent notices at its next ping.
  if (!is_registered_) next = std::min(next, node_lease_ends());
  const Instant stops_at = std::max(worker_lease_.sigterm_at(), resume_wait_.ends_at());
  if (state_ == State::Running && is_leased()) next = std::min(next, stops_at);
  if (survivors_.are_held() && is_leased()) next = std::min(next, worker_lease_.sigterm_at());
  if (is_stopping_past_worker_lease()) next = std::min(next, worker_lease_.deadline());
  return next;
}

// An agent that is not registered may be connected to a coordinator that must not lead the job
// (R17), so it gives up after two leases.
Instant Agent::node_lease_ends() const {
  if (!is_connected_) return Instant::never();
  if (!is_registered_) return last_message_at_ + options_.facts.job_spec.lease * 2;
  return is_leased() ? last_message_at_ + lease_ : Instant::never();
}

// Stopping workers must be gone at the lease's deadline, whatever their grace.
bool Agent::is_stopping_past_worker_lease() const {
  bool is_stopping =
      state_ == State::Stopping || state_ == State::Leaving || state_ == State::Draining;
  return is_stopping && is_leased() && !lease_killed_;
}

}  // namespace cpprun::agent
