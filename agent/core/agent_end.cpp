#include <algorithm>
#include <utility>

#include "agent/core/agent.hpp"
#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
#include "rendezvous/protocol/sanitize.hpp"

namespace cpprun::agent {
namespace {

constexpr int kSigInt = 2;
constexpr int kSigQuit = 3;
constexpr int kSigTerm = 15;
constexpr int kSigKill = 9;

// Losses are warnings, because the user sees their cause nowhere else. Failures have a summary of
// their own, and a larger round is no loss.
LogEvent::Level level_of(control::StopCause cause) {
  const bool is_loss =
      cause == control::StopCause::NodeLost || cause == control::StopCause::NodeLeft;
  return is_loss ? LogEvent::Level::Warning : LogEvent::Level::Info;
}

// A person at a keyboard sends these. Schedulers repeat SIGTERM within milliseconds, and a terminal
// that closes adds SIGHUP: the repetition is no second request.
bool is_urgent(int signal) {
  return signal == kSigInt || signal == kSigQuit;
}

}  // namespace

// ---------------------------------------------------------------- the end of a round

void Agent::on(Instant now, const control::Stop& message, Effects& effects) {
  if (message.round != assignment_.round) return;
  // In both cases the workers save, and an exit meanwhile counts as no failure.
  const bool is_drain =
      message.cause == control::StopCause::Drain || message.cause == control::StopCause::Operator;
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
      drop_fetch(effects);
      become_stopped(now, effects);
      return;
    case State::Done:
      effects.push_back(LogEvent{level_of(message.cause),
                                 "the workers had ended well and start again: " + message.why});
      become_stopped(now, effects);
      return;
    case State::Running:
      effects.push_back(LogEvent{level_of(message.cause), "stopping the workers: " + message.why});
      stop_workers(options_.stop_grace, is_drain, effects);
      return;
    case State::Stopped:
      if (!is_stopped_unreported()) send_stopped(effects);
      return;
    default:
      return;
  }
}

// ---------------------------------------------------------------- the end of the run

void Agent::on(Instant, const control::JobResult& message, Effects& effects) {
  job_result_ = control::sanitize(message);
  if (!message.is_resumable) flush_held_failure(effects);
  effects.push_back(SendMessage{control::Ack{message.is_success}});
  drop_fetch(effects);
  if (state_ == State::Starting) state_ = State::Stopped;  // no worker has been started
  if (state_ == State::Running)
    stop_workers(options_.stop_grace, false, effects);  // the job ended without this node
}

void Agent::on(Instant, const control::Bye&, Effects& effects) {
  if (job_result_) finish_job(effects);
}

// The job has a result. Workers that still run are stopped before the agent ends (R4).
void Agent::finish_job(Effects& effects) {
  is_finishing_ = true;
  if (is_leaving()) return;  // the drain or the signal ends the agent
  if (state_ == State::Running) stop_workers(options_.stop_grace, false, effects);
  if (has_workers()) return;
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
  how.ends = failed_ends_;
  const bool is_hang =
      job_result_ && job_result_->root_cause && job_result_->root_cause->end.is_hang();
  how.restarts_used = is_hang ? assignment_.hang_restarts : assignment_.restart_count;
  how.admin_restarts = assignment_.admin_restarts;
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
  if (!has_workers()) return leave(effects);
  state_ = State::Leaving;
  effects.push_back(StopWorkers{signal, options_.stop_grace});
}

// The first SIGTERM.
void Agent::on_request(Instant now, Effects& effects) {
  if (state_ == State::Running) return drain(effects);
  // the workers save already, because another node drains
  if (state_ == State::Stopping && is_drained_) {
    state_ = State::Draining;
    effects.push_back(SendMessage{control::Draining{assignment_.round}});
  } else if (state_ == State::Stopping) {  // the workers have got SIGTERM already
    state_ = State::Leaving;
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

// No worker runs here, and no drain has stopped one: SIGTERM loses no work.
void Agent::leave(Effects& effects) {
  const bool is_kept = signal_ == kSigTerm && !is_failing();
  effects.push_back(
      SendMessage{control::Leave{is_kept ? "asked to stop" : "ended by a signal", is_kept}});
  effects.push_back(Disconnect{false});
  if (signal_ == kSigTerm && job_result_) return finish(Finish{}, effects);
  Finish how;
  how.how = is_kept ? Finish::How::Stopped : Finish::How::Signal;
  how.text = waited_for();
  finish(std::move(how), effects);
}

// Whether the newest round ended by a failure that ends the job.
bool Agent::is_failing() const {
  const bool is_fatal = unreported_failure_ && unreported_failure_->is_fatal;
  const bool has_failed = unreported_failure_ || charged_ != control::RestartCharge::None;
  const bool is_hang = charged_ == control::RestartCharge::Hang ||
                       (unreported_failure_ && unreported_failure_->end.is_hang());
  const int64_t used = is_hang ? assignment_.hang_restarts : assignment_.restart_count;
  return is_fatal || (has_failed && used >= assignment_.max_restarts);
}

// ---------------------------------------------------------------- drain

// An admin command. Its repetition changes nothing; a real signal does.
void Agent::on(Instant now, const control::ShutdownRequest& message, Effects& effects) {
  if (is_leaving() || job_result_) return;
  effects.push_back(LogEvent{LogEvent::Level::Info, message.why});
  on_signal(now, message.saves ? kSigTerm : kSigInt, effects);
}

// The coordinator gets Draining before any worker exits, so that no exit counts as a failure.
void Agent::drain(Effects& effects) {
  state_ = State::Draining;
  is_drained_ = true;
  effects.push_back(SendMessage{control::Draining{assignment_.round}});
  effects.push_back(StopWorkers{kSigTerm, options_.stop_grace, true});
}

// The worker lost no work to the drain: it saved, or had finished no step. The same command
// continues it.
bool Agent::is_resumable(const WorkerExit& end) const {
  return end.exit_code == kStoppedResumable || unstepped_.contains(end.local_rank.value);
}

// Every worker has saved, has finished, or had not begun.
bool Agent::has_saved() const {
  auto is_well = [this](const WorkerExit& end) { return end.is_success() || is_resumable(end); };
  return is_drained_ && std::all_of(ends_.begin(), ends_.end(), is_well);
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
  wants_port_for_stopped_ = false;
  if (!std::exchange(wants_scan_for_stopped_, false)) leave_after_drain(effects);
}

void Agent::leave_after_drain(Effects& effects) {
  const auto resumes = [this](const WorkerExit& end) { return is_resumable(end); };
  const auto is_saved = [](const WorkerExit& end) { return end.exit_code == kStoppedResumable; };
  const bool is_kept = has_saved() && std::any_of(ends_.begin(), ends_.end(), resumes);
  effects.push_back(SendMessage{control::Leave{"asked to stop", has_saved()}});
  effects.push_back(Disconnect{false});
  Finish how;
  how.how = is_kept ? Finish::How::Stopped : Finish::How::Signal;
  how.has_saved = is_kept && std::any_of(ends_.begin(), ends_.end(), is_saved);
  if (is_kept) how.stays_until = signalled_at_ + options_.stop_grace;
  finish(std::move(how), effects);
}

// The held exit was a failure after all.
void Agent::flush_held_failure(Effects& effects) {
  if (held_failure_) effects.push_back(*held_failure_);
  held_failure_.reset();
}

// ---------------------------------------------------------------- snapshots

void Agent::on_snapshots(Instant, std::vector<control::SnapshotName> snapshots, Effects& effects) {
  const bool is_new = snapshots != snapshots_;
  snapshots_ = std::move(snapshots);
  if (state_ == State::Saved) return leave_after_drain(effects);
  if (std::exchange(wants_scan_for_stopped_, false)) return send_stopped_if_known(effects);
  if (is_new && is_connected_) effects.push_back(SendMessage{newest_snapshots()});
}

// Every message repeats which snapshot was unusable, so that a lost connection loses that only for
// a while.
control::Snapshots Agent::newest_snapshots() const {
  return {snapshots_, fell_back_ ? assignment_.resume->snapshot.id : ""};
}

void Agent::on_fell_back(int64_t step, Effects& effects) {
  if (!assignment_.resume || std::exchange(fell_back_, true)) return;
  const control::SnapshotName& chosen = assignment_.resume->snapshot;
  const std::string instead =
      step < 0 ? "training begins anew" : "training goes on from step " + std::to_string(step);
  effects.push_back(LogEvent{
      LogEvent::Level::Warning,
      "the snapshot of step " + std::to_string(chosen.step) + " could not be used, " + instead});
  if (is_connected_) effects.push_back(SendMessage{newest_snapshots()});
}

void Agent::on_fetched(Instant now, Effects& effects) {
  if (!std::exchange(is_fetching_, false)) return;
  if (!is_fetching_replicas_) join_deadline_ = now + options_.join_timeout;
  start_if_leased(now, effects);
}

void Agent::on_replicas_fetched(Instant now, Effects& effects) {
  if (!std::exchange(is_fetching_replicas_, false)) return;
  if (!is_fetching_) join_deadline_ = now + options_.join_timeout;
  start_if_leased(now, effects);
}

void Agent::drop_fetch(Effects& effects) {
  const bool is_fetching = std::exchange(is_fetching_, false);
  const bool is_seeking = std::exchange(is_fetching_replicas_, false);
  if (is_fetching || is_seeking) effects.push_back(DropFetch{});
}

void Agent::on_fetch_failed(Instant now, const Error& error, bool is_damaged, Effects& effects) {
  if (!std::exchange(is_fetching_, false)) return;
  drop_fetch(effects);  // also FetchReplicas
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
  effects.push_back(BecomeCoordinator{Term(term_.value + 1), *assignment_.standby});
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

bool Agent::is_led(Instant now) const {
  return is_connected_ && is_registered_ && now < worker_lease_.sigterm_at();
}

bool Agent::would_lead() const {
  return !is_leaving() && state_ != State::Ended && !job_result_;
}

// ---------------------------------------------------------------- time

void Agent::on_time(Instant now, Effects& effects) {
  if (state_ == State::Ended) return;
  // After a freeze several deadlines may have passed: workers past the lease first (R11).
  if (state_ == State::Running && is_leased() && now >= worker_lease_.sigterm_at()) {
    stop_past_worker_lease(std::max(Duration{}, worker_lease_.deadline() - now), effects);
  }
  if (is_past_worker_lease(now)) {
    lease_killed_ = true;
    effects.push_back(StopWorkers{kSigKill, Duration{}});
  }
  if (now >= ping_at_) ping(now, effects);
  if (now >= node_lease_ends()) {
    // The host or its network may be gone; TCP alone would try for many minutes.
    last_message_at_ = now;
    effects.push_back(
        LogEvent{LogEvent::Level::Info, "the coordinator is silent; connecting again"});
    effects.push_back(Reconnect{!is_registered_});
  }
  if (state_ == State::Saved && now >= leave_at_) return leave_after_drain(effects);
  if (now >= join_deadline_ && !is_spare_) give_up_joining(effects);
}

Instant Agent::next_deadline() const {
  if (state_ == State::Ended) return Instant::never();
  Instant next = ping_at_;
  if (!is_spare_) next = std::min(next, join_deadline_);
  if (state_ == State::Saved) next = std::min(next, leave_at_);
  // A registered agent notices at its next ping.
  if (!is_registered_) next = std::min(next, node_lease_ends());
  if (state_ == State::Running && is_leased()) next = std::min(next, worker_lease_.sigterm_at());
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

bool Agent::is_past_worker_lease(Instant now) const {
  return is_stopping_past_worker_lease() && now >= worker_lease_.deadline();
}

}  // namespace cpprun::agent
