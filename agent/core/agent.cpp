#include "agent/core/agent.hpp"

#include <algorithm>
#include <utility>

#include "agent/core/join_texts.hpp"
#include "agent/core/restart_budget.hpp"
#include "agent/core/stop_texts.hpp"
#include "common/check.hpp"
#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
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
  join_wait_.begin(now);
  facts_.collect(effects);
}

bool Agent::has_workers() const {
  return state_ == State::Running || state_ == State::Stopping || state_ == State::Leaving ||
         state_ == State::Draining;
}

// ---------------------------------------------------------------- connection

control::ReportedPhase Agent::reported_phase() const {
  // The agent sends Failed or Stopped right after registering; until then the round still runs.
  const bool is_unreported = failure_.unreported() || facts_.is_stopped_incomplete();
  const bool is_in_round = has_workers() || state_ == State::Starting || state_ == State::Saved;
  if (is_unreported || is_in_round) return control::ReportedPhase::Running;
  if (state_ == State::Stopped) return control::ReportedPhase::Stopped;
  return state_ == State::Done ? control::ReportedPhase::Done : control::ReportedPhase::Idle;
}

void Agent::on_connected(Instant now, std::vector<std::string> addresses, const Endpoint& peer,
                         Effects& effects) {
  link_.on_connected(peer);
  leases_.on_heard(now);
  control::Hello hello = options_.hello;
  hello.connection += link_.number();
  control::Register facts = facts_.registration();
  facts.addresses = std::move(addresses);
  facts.reported_phase = reported_phase();
  facts.round = round_.number();
  facts.term = link_.term();
  facts.is_draining = state_ == State::Draining || state_ == State::Saved;
  if (!round_.is_none()) facts.assignment = round_.assignment();
  facts.has_evidence = link_.has_evidence();
  facts.knows_standby = link_.knows_standby();
  facts.has_worker_lease = has_worker_lease(now);
  facts.charged = round_.charged();
  facts.is_stop_requested = round_.is_drained();
  facts.decided = job_result_;
  effects.push_back(SendMessage{hello});
  effects.push_back(SendMessage{facts});
  if (leases_.exist()) leases_.ping(now, effects);
  failure_.send_again(effects);
  if (failure_.unreported()) send_stopped(effects);
}

void Agent::on_disconnected(Instant now, Effects& effects) {
  link_.on_disconnected();
  leases_.on_disconnected();
  if (state_ == State::Ended) return;
  if (is_dismissed_) effects.push_back(Disconnect{false});
  if (job_result_) return finish_job(effects);
  join_wait_.on_disconnected(now, has_workers(), state_ == State::Done);
  effects.push_back(LogEvent{LogEvent::Level::Info, "the connection to the coordinator broke"});
}

void Agent::on_message(Instant now, const control::CoordinatorMessage& message, Effects& effects) {
  if (state_ == State::Ended || link_.is_ignored()) return;
  leases_.on_heard(now);
  std::visit([&](const auto& m) { on(now, m, effects); }, control::sanitize(message));
}

void Agent::on(Instant now, const control::Registered& message, Effects& effects) {
  if (!link_.on_registered(message.term, effects)) return;
  round_.on_registered(message);
  const bool was_leased = leases_.exist();
  leases_.on_registered(now, message, effects);
  // The other nodes' workers may still run for long.
  if (state_ == State::Done) join_wait_.suspend();
  const bool is_coordinator_here = was_leased && !leases_.exist();
  if (is_coordinator_here && needs_worker_lease()) {
    effects.push_back(SetWorkerLease{Instant::never()});
  }
}

// ---------------------------------------------------------------- the worker lease

void Agent::on(Instant now, const control::Pong& message, Effects& effects) {
  // The agent was frozen while this pong waited in its socket. The reaper process has killed the
  // workers at the deadline, and a late pong cannot bring them back (R11).
  const bool is_late = now >= leases_.deadline();
  if (state_ == State::Running && is_late && !awaits_answer(now))
    stop_past_worker_lease(Duration{}, effects);
  const bool is_longer = leases_.on_pong(now, message);
  if (options_.is_led_by_election && is_led(now)) leases_.ping_sooner(now);
  if (!is_longer || !leases_.exist()) return;
  const bool may_run = needs_worker_lease() && !lease_killed_;  // a later deadline ends SIGSTOP
  if (may_run) effects.push_back(SetWorkerLease{leases_.deadline()});
  if (state_ == State::Starting) start_if_leased(now, effects);
}

// ---------------------------------------------------------------- rounds

void Agent::on(Instant now, const control::RankAssignment& message, Effects& effects) {
  bool may_start = state_ == State::Joining || state_ == State::Stopped;
  if (!may_start || message.round <= round_.number() || message.term < link_.term()) return;  // R1
  if (const std::string wrong = wrong_ranks_text(message, facts_.fixed().nproc); !wrong.empty()) {
    return leave_job({wrong}, Finish::error(wrong), effects);
  }
  if (round_.is_none()) facts_.forget_host_records();
  round_.begin(message, options_.hello.node.incarnation);
  leases_.begin_round();
  failure_.begin_round();
  join_wait_.on_assigned();
  state_ = State::Starting;
  if (!link_.is_leading() && leases_.exist() && !options_.is_led_by_election) {
    const bool is_elsewhere = message.standby && !round_.is_standby();
    effects.push_back(is_elsewhere ? Routes{{endpoint_of(*message.standby)}} : Routes{});
  }
  preparation_.begin(message, facts_.fixed(), effects);
  if (preparation_.is_fetching()) join_wait_.suspend();  // a fetch has time limits of its own
  start_if_leased(now, effects);
}

// Workers may run only under a worker lease (R6). The first pong may come shortly after the rank
// assignment. The lease is checked again when the files are ready, because it may have ended.
void Agent::start_if_leased(Instant now, Effects& effects) {
  if (state_ != State::Starting || preparation_.is_waiting() || survivors_.are_dropped() ||
      leases_.sigterm_at() <= now)
    return;
  join_wait_.suspend();  // the preparation of the files has a time limit of its own
  if (!preparation_.is_done()) return preparation_.make_files(round_.assignment(), effects);
  state_ = State::Running;
  lease_killed_ = false;
  survivors_.on_round_started();
  effects.push_back(SetWorkerLease{leases_.deadline()});
  effects.push_back(StartWorkers{round_.assignment()});
}

void Agent::on_prepared(Instant now, Effects& effects) {
  if (!preparation_.on_files_made()) return;
  join_wait_.begin(now);
  start_if_leased(now, effects);
}

void Agent::on_started(Effects& effects) {
  if (state_ != State::Running) return;
  effects.push_back(SendMessage{control::Started{round_.number()}});
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
  failure_.on_no_start({round_.number(), WorkerExit{}, is_fatal, error.text}, effects);
  become_stopped(now, effects);
}

void Agent::stop_workers(Duration grace, bool lets_save, Effects& effects) {
  state_ = State::Stopping;
  effects.push_back(StopWorkers{kSigTerm, grace, lets_save});
}

void Agent::stop_but_survivors(std::optional<LocalRank> hung, Effects& effects) {
  state_ = State::Stopping;
  survivors_.ask(options_.stop_grace, hung, effects);
}

void Agent::stop_after_failure(std::optional<LocalRank> hung, Effects& effects) {
  const bool may_stay = survivors_.may_stay(round_.assignment(), hung.has_value());
  return may_stay ? stop_but_survivors(hung, effects)
                  : stop_workers(options_.stop_grace, false, effects);
}

// Other nodes may form a round without this node from now on. This is no worker's failure, and no
// restart budget is charged.
void Agent::stop_past_worker_lease(Duration grace, Effects& effects) {
  effects.push_back(LogEvent{LogEvent::Level::Warning, kPastLeaseText});
  round_.exits().excuse();
  stop_workers(grace, false, effects);
}

void Agent::on_worker_failed(Instant now, const WorkerExit& end, Effects& effects) {
  if (round_.is_drained() || state_ != State::Running) return;
  // The agent was frozen, and the reaper process killed the workers (R11).
  if (now >= leases_.deadline()) return stop_past_worker_lease(Duration{}, effects);
  // Stop the other workers at once, without waiting for the coordinator. A worker that exits with
  // kStoppedResumable shows that another node drains; the coordinator's Stop is on its way, and the
  // other workers here save as well.
  failure_.await_exit();
  const bool is_drain = end.exit_code == kStoppedResumable;
  is_drain ? stop_workers(options_.stop_grace, true, effects)
           : stop_after_failure(std::nullopt, effects);
}

void Agent::on_workers_killed(Instant, Effects& effects) {
  if (state_ == State::Running) stop_past_worker_lease(Duration{}, effects);
}

void Agent::on_worker_exit(Instant now, const WorkerExit& end, Effects& effects) {
  if (survivors_.exist() && !has_workers()) return;  // between two rounds
  round_.exits().add(end);
  if (round_.is_drained()) return on_failed_save(end, effects);
  if (end.is_success()) return;
  on_worker_failed(now, end, effects);
  failure_.on_exit(now, end, round_.assignment(), survivors_.are_asked(), effects);
}

void Agent::on_hang(Instant now, const WorkerExit& hung, Effects& effects) {
  if (state_ != State::Running) return;  // the round is being stopped for another reason
  if (now >= leases_.deadline()) return stop_past_worker_lease(Duration{}, effects);
  round_.exits().on_hang(hung);
  stop_after_failure(hung.local_rank, effects);
  failure_.on_hang(hung, round_.assignment(), survivors_.are_asked(), effects);
}

void Agent::on_all_workers_gone(Instant now, Effects& effects) {
  if (state_ == State::Ended) return;  // the coordinator refused this agent while workers ran
  if (survivors_.exist() && !has_workers()) return on_survivors_gone(now, effects);
  survivors_.on_gone();
  round_.on_workers_gone();
  effects.push_back(SetWorkerLease{Instant::never()});
  switch (state_) {
    case State::Running:
      state_ = State::Done;
      if (!link_.is_connected()) join_wait_.begin(now);
      effects.push_back(SendMessage{control::Done{round_.number()}});
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
      if (!facts_.fixed().has_snapshot_dir) return leave_after_drain(effects);
      leave_at_ = now + limits::kFinalScanTimeout;
      effects.push_back(ScanSnapshots{});
      return;
    default: CPPRUN_CHECK(false);
  }
}

void Agent::on_workers_released(Instant now, Effects& effects) {
  if (state_ != State::Stopping) return;
  round_.on_workers_gone();
  round_.exits().on_released();
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
  const bool has_all_ends = static_cast<int64_t>(round_.exits().size()) >= facts_.fixed().nproc;
  round_.on_workers_gone();
  const std::string why = "it is unusable: SIGKILL did not end " + what;
  const Finish how{Finish::How::Unusable, signal_, what, {}, 0};
  leave_job({why, has_all_ends && round_.has_saved(), true}, how, effects);
}

// The agent sends Stopped with the next round's port and the newest snapshots, so it collects both
// first.
void Agent::become_stopped(Instant now, Effects& effects) {
  state_ = State::Stopped;
  join_wait_.begin(now);
  facts_.collect_for_stopped(effects);
}

void Agent::on_port(Instant, int64_t port, Effects& effects) {
  if (facts_.on_port(port)) send_stopped(effects);
}

// Later, if a part of the message is not known yet.
void Agent::send_stopped(Effects& effects) {
  if (facts_.is_stopped_incomplete() || state_ != State::Stopped) return;
  effects.push_back(SendMessage{
      control::Stopped{round_.number(), facts_.port(), facts_.snapshots(), round_.has_saved(),
                       round_.own_failure(), round_.exits().last_step(), facts_.check().result()}});
}

// Without another node nothing can come of a job whose node is bad.
void Agent::on_node_checked(Instant now, const std::string& why, Effects& effects) {
  const bool is_news = facts_.check().on_result(now, why);
  if (state_ == State::Ended || is_leaving()) return;
  const bool is_alone = facts_.fixed().job_spec.max_nodes == 1;
  if (!why.empty() && is_alone && !has_workers()) {
    const Finish how = Finish::error("the node check (--node-check) failed: " + why);
    return leave_job({"the node check failed"}, how, effects);
  }
  if (is_news) effects.push_back(LogEvent{LogEvent::Level::Warning, facts_.check().text()});
  if (facts_.on_node_checked()) return send_stopped(effects);
  if (link_.is_connected()) effects.push_back(SendMessage{facts_.check().result()});
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
  const LogEvent event = join_wait_.on_wait(now, message, has_workers());
  link_.on_wait(message);
  const bool is_left_out = message.is_spare || message.is_excluded;
  if (is_left_out && survivors_.are_held()) survivors_.drop(options_.stop_grace, effects);
  if (message.standby && !link_.is_leading() && leases_.exist()) {
    effects.push_back(Routes{{endpoint_of(*message.standby)}});
  }
  effects.push_back(event);
}

// What a node that was in no round yet waits for; "" otherwise.
std::string Agent::waited_for() const {
  if (state_ != State::Joining || !round_.is_none()) return "";
  return join_wait_.waiting_text(link_.is_connected());
}

// An agent that was never registered may host its job at once when no process listens at the
// endpoint. One that was registered waits until every lease that its coordinator can have issued
// has ended (I1), and never hosts while another node is the standby.
bool Agent::may_host(Instant now) const {
  if (state_ != State::Joining || job_result_ || !round_.is_none()) return false;
  if (link_.is_connected() || link_.knows_standby()) return false;
  return link_.term() == Term() || now >= leases_.node_lease_ends();
}

void Agent::give_up_joining(Effects& effects) {
  Finish how = Finish::error(
      join_wait_.timeout_text(link_.is_connected(), round_.lost(), state_ == State::Done));
  how.lost = round_.lost();
  leave_job({"the join timeout was reached"}, std::move(how), effects);
}

// ---------------------------------------------------------------- the end of a round

void Agent::on(Instant now, const control::Stop& message, Effects& effects) {
  if (message.round != round_.number()) return;
  const bool is_drain = control::is_requested(message.cause);
  round_.on_stop(message);
  failure_.on_stop(message.cause, effects);
  switch (state_) {
    case State::Starting:
      effects.push_back(stop_event(message, round_.assignment(), false));
      preparation_.cancel(effects);
      become_stopped(now, effects);
      return;
    case State::Done:
      effects.push_back(stop_event(message, round_.assignment(), true));
      become_stopped(now, effects);
      return;
    case State::Running: {
      const bool may_stay = survivors_.may_stay(round_.assignment(), message);
      effects.push_back(stop_event(message, round_.assignment(), false, may_stay));
      if (may_stay) return stop_but_survivors(std::nullopt, effects);
      stop_workers(options_.stop_grace, is_drain, effects);
      return;
    }
    case State::Stopping:  // after a failure here
      if (is_drain && survivors_.are_asked() && !survivors_.may_stay(round_.assignment(), message))
        survivors_.drop(options_.stop_grace, effects);
      return;
    case State::Stopped: return send_stopped(effects);
    default: return;
  }
}

// ---------------------------------------------------------------- the end of the run

void Agent::on(Instant, const control::JobResult& message, Effects& effects) {
  job_result_ = message;
  if (!message.is_resumable) failure_.show_held(effects);
  effects.push_back(SendMessage{control::Ack{message.is_success}});
  preparation_.cancel(effects);
  if (state_ == State::Starting) state_ = State::Stopped;  // no worker has been started
  if (state_ == State::Running)
    stop_workers(options_.stop_grace, false, effects);  // the job ended without this node
}

void Agent::on(Instant, const control::Bye&, Effects& effects) {
  is_dismissed_ = job_result_.has_value();
  if (is_dismissed_) finish_job(effects);
}

void Agent::on_unreachable(Instant, const Error& error, Effects& effects) {
  if (state_ != State::Ended) finish(Finish::error(error.text), effects);
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

void Agent::leave_job(const control::Leave& message, Finish how, Effects& effects) {
  effects.push_back(SendMessage{message});
  effects.push_back(Disconnect{false});
  finish(std::move(how), effects);
}

// `how.how` Success stands for the coordinator's result, if there is one (R9).
void Agent::finish(Finish how, Effects& effects) {
  if (job_result_ && how.how == Finish::How::Success && !job_result_->is_success) {
    how.how = job_result_->is_resumable ? Finish::How::Stopped : Finish::How::Failure;
    how.text = job_result_->failure_summary;
  }
  if (!facts_.snapshots().empty()) how.snapshot = facts_.snapshots().front();
  round_.describe(job_result_, how);
  how.signal = signal_;
  how.job_result = job_result_;
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
  if (state_ == State::Stopping && round_.is_drained() && !survivors_.are_asked()) {
    state_ = State::Draining;
    effects.push_back(SendMessage{control::Draining{round_.number()}});
  } else if (state_ == State::Stopping || survivors_.exist()) {
    // The workers have got SIGTERM already, but for those that can regroup.
    state_ = State::Leaving;
    if (survivors_.are_asked() || survivors_.are_held()) {
      effects.push_back(StopWorkers{kSigTerm, options_.stop_grace});
    }
    survivors_.on_gone();
  } else if (state_ == State::Stopped && round_.is_drained()) {
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
  const bool is_failing = ends_job(round_.assignment(), round_.charged(), failure_.unreported());
  const bool loses_nothing =
      signal_ == kSigTerm && !is_failing && (!round_.is_drained() || round_.has_saved());
  Finish how;
  const bool is_result_known = signal_ == kSigTerm && job_result_;
  if (!is_result_known) {
    how.how = loses_nothing ? Finish::How::Stopped : Finish::How::Signal;
    how.text = waited_for();
  }
  const std::string why = loses_nothing ? "asked to stop" : "ended by a signal";
  leave_job({why, loses_nothing}, std::move(how), effects);
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
  round_.on_drain();
  effects.push_back(SendMessage{control::Draining{round_.number()}});
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
  if (!facts_.cancel_stopped()) leave_after_drain(effects);
}

void Agent::leave_after_drain(Effects& effects) {
  const bool loses_nothing = round_.has_saved() && round_.exits().can_resume();
  Finish how;
  how.how = loses_nothing ? Finish::How::Stopped : Finish::How::Signal;
  how.has_saved = loses_nothing && round_.exits().have_saved();
  if (loses_nothing) how.stays_until = signalled_at_ + options_.stop_grace;
  leave_job({"asked to stop", round_.has_saved()}, std::move(how), effects);
}

// ---------------------------------------------------------------- snapshots

void Agent::on_snapshots(Instant, std::vector<control::SnapshotName> snapshots, Effects& effects) {
  const bool is_new = snapshots != facts_.snapshots();
  const bool is_awaited = facts_.on_snapshots(std::move(snapshots));
  if (state_ == State::Saved) return leave_after_drain(effects);
  if (is_awaited) return send_stopped(effects);
  if (is_new && link_.is_connected()) effects.push_back(SendMessage{newest_snapshots()});
}

void Agent::on_fell_back(int64_t step, Effects& effects) {
  if (!round_.on_fell_back()) return;
  const int64_t chosen = round_.assignment().resume->snapshot.step;
  effects.push_back(LogEvent{LogEvent::Level::Warning, fell_back_text(chosen, step)});
  if (link_.is_connected()) effects.push_back(SendMessage{newest_snapshots()});
}

// Every message repeats which snapshot was unusable, so that a lost connection loses that only for
// a while.
control::Snapshots Agent::newest_snapshots() const {
  return {facts_.snapshots(), round_.unusable_snapshot()};
}

void Agent::on_fetched(Instant now, Effects& effects) {
  if (preparation_.on_snapshot_fetched()) on_fetch_ended(now, effects);
}

void Agent::on_replicas_fetched(Instant now, Effects& effects) {
  if (preparation_.on_replicas_fetched()) on_fetch_ended(now, effects);
}

void Agent::on_fetch_ended(Instant now, Effects& effects) {
  if (!preparation_.is_fetching()) join_wait_.begin(now);
  start_if_leased(now, effects);
}

void Agent::on_fetch_failed(Instant now, const Error& error, bool is_damaged, Effects& effects) {
  if (!preparation_.on_snapshot_fetched()) return;
  preparation_.cancel(effects);  // also FetchReplicas
  effects.push_back(LogEvent{LogEvent::Level::Warning, error.text});
  const std::string damaged = is_damaged ? round_.assignment().resume->snapshot.id : "";
  failure_.on_no_start({round_.number(), WorkerExit{}, false, error.text, damaged}, effects);
  become_stopped(now, effects);
}

// ---------------------------------------------------------------- a dead coordinator, etcd

// Under a worker lease no coordinator has counted this node as lost (I1), and it has not sent
// Stopped: so there is no later round.
bool Agent::has_worker_lease(Instant now) const {
  const bool is_in_round =
      state_ == State::Starting || state_ == State::Running || state_ == State::Stopping;
  return is_in_round && leases_.hold_workers(now);
}

// While the worker lease holds, no other node has formed a round without this one, and no other
// standby was chosen (R16).
void Agent::on_refused(Instant now, const std::vector<Endpoint>& places, Effects& effects) {
  if (state_ == State::Ended || !link_.on_refused(places)) return;
  const bool is_going = job_result_ || is_leaving();
  const bool has_lease = leases_.hold_workers(now);
  if (!round_.is_standby() || !has_lease || is_going) return;
  effects.push_back(LogEvent{LogEvent::Level::Warning,
                             "the coordinator is dead; leading the job from this node"});
  effects.push_back(BecomeCoordinator{link_.begin_leading(), *round_.assignment().standby,
                                      round_.assignment().job_key});
}

void Agent::on(Instant, const control::Redirect& message, Effects& effects) {
  link_.on_redirect(message, round_.is_none(), effects);
}

void Agent::on_led_from(const Endpoint& place, Effects& effects) {
  if (state_ != State::Ended) link_.on_led_from(place, effects);
}

// ---------------------------------------------------------------- time

bool Agent::awaits_answer(Instant now) {
  const bool may_wait = state_ == State::Running && link_.is_registered() && !link_.is_ignored();
  return may_wait && leases_.await_answer(now, next_deadline());
}

void Agent::on_time(Instant now, Effects& effects) {
  if (state_ == State::Ended) return;
  // After a freeze several deadlines may have passed: workers past the lease first (R11).
  const bool awaits = awaits_answer(now);
  const bool is_ending = now >= leases_.sigterm_at();
  if (!awaits && state_ == State::Running && is_ending) {
    stop_past_worker_lease(leases_.grace(now), effects);
  }
  if (survivors_.are_held() && is_ending) {
    lease_killed_ = true;
    survivors_.drop(leases_.grace(now), effects);
  }
  if (is_stopping_past_worker_lease() && now >= leases_.deadline()) {
    lease_killed_ = true;
    effects.push_back(StopWorkers{kSigKill, Duration{}});
  }
  if (now >= leases_.ping_at()) leases_.ping(now, effects);
  if (now >= node_lease_ends() && !awaits) {
    // The host or its network may be gone; TCP alone would try for many minutes.
    leases_.on_heard(now);
    effects.push_back(
        LogEvent{LogEvent::Level::Info, "the coordinator is silent; connecting again"});
    effects.push_back(Reconnect{!link_.is_registered()});
  }
  if (state_ == State::Saved && now >= leave_at_) return leave_after_drain(effects);
  const bool may_check = state_ == State::Joining || state_ == State::Stopped;
  if (facts_.check().is_due(now) && may_check && facts_.check().repeat())
    effects.push_back(RunNodeCheck{});
  if (now >= join_wait_.deadline()) give_up_joining(effects);
}

Instant Agent::next_deadline() const {
  if (state_ == State::Ended) return Instant::never();
  Instant next = std::min(leases_.ping_at(), join_wait_.deadline());
  if (state_ == State::Saved) next = std::min(next, leave_at_);
  if (state_ == State::Joining || state_ == State::Stopped)
    next = std::min(next, facts_.check().next());
  // A registered agent notices at its next ping.
  if (!link_.is_registered()) next = std::min(next, node_lease_ends());
  if (state_ == State::Running) next = std::min(next, leases_.stop_at());
  if (survivors_.are_held()) next = std::min(next, leases_.sigterm_at());
  if (is_stopping_past_worker_lease()) next = std::min(next, leases_.deadline());
  return next;
}

// An agent that is not registered may be connected to a coordinator that must not lead the job
// (R17), so it gives up after two leases.
Instant Agent::node_lease_ends() const {
  if (!link_.is_connected()) return Instant::never();
  if (link_.is_registered()) return leases_.node_lease_ends();
  return leases_.heard_at() + facts_.fixed().job_spec.lease * 2;
}

// Stopping workers must be gone at the lease's deadline, whatever their grace.
bool Agent::is_stopping_past_worker_lease() const {
  bool is_stopping =
      state_ == State::Stopping || state_ == State::Leaving || state_ == State::Draining;
  return is_stopping && leases_.exist() && !lease_killed_;
}

}  // namespace cpprun::agent
