// Agent: how a round and a run end, what stopping on request means, and time.
#include <algorithm>
#include <utility>

#include "agent/core/agent.hpp"
#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
#include "rendezvous/protocol/plain.hpp"

namespace cpprun::agent {
namespace {

constexpr int kSigInt = 2;
constexpr int kSigQuit = 3;
constexpr int kSigTerm = 15;
constexpr int kSigKill = 9;

// Nobody here has seen why the workers stop: failures are told, and a larger world is no loss.
Note::Level level_of(control::StopCause cause) {
  const bool is_loss =
      cause == control::StopCause::NodeLost || cause == control::StopCause::NodeLeft;
  return is_loss ? Note::Level::Warning : Note::Level::Info;
}

// A person at a keyboard sends these. Schedulers repeat SIGTERM within milliseconds, and a terminal
// that closes adds SIGHUP: that is one request.
bool hurries(int signal) {
  return signal == kSigInt || signal == kSigQuit;
}

}  // namespace

// ---------------------------------------------------------------- the end of a round

void Agent::on(Instant now, const control::Stop& message, Effects& effects) {
  if (message.round != world_.round) return;
  // In both cases workers save, and what fails meanwhile is nobody's failure.
  const bool is_drain =
      message.cause == control::StopCause::Drain || message.cause == control::StopCause::Operator;
  const bool is_known =
      message.cause == control::StopCause::Failure || message.cause == control::StopCause::Snapshot;
  if (is_known) unreported_.reset();
  if (message.cause == control::StopCause::NodeLost) lost_ = message.why;
  if (message.charged != control::Charge::None) charged_ = message.charged;
  if (is_drain) {
    is_drained_ = true;
    unsaid_.reset();
  } else if (unsaid_) {
    say_unsaid(effects);
    effects.push_back(EndSaving{kSigTerm});
  }
  switch (state_) {
    case State::Starting:
      drop_fetch(effects);
      become_stopped(now, effects);
      return;
    case State::Done:
      effects.push_back(Note{level_of(message.cause),
                             "the workers had ended well and start again: " + message.why});
      become_stopped(now, effects);
      return;
    case State::Running:
      effects.push_back(Note{level_of(message.cause), "stopping the workers: " + message.why});
      stop_workers(options_.stop_grace, is_drain, effects);
      return;
    case State::Stopped:
      if (!is_stopped_untold()) say_stopped(effects);
      return;
    default:
      return;
  }
}

// ---------------------------------------------------------------- the end

void Agent::on(Instant, const control::Decided& message, Effects& effects) {
  decided_ = control::plain(message);
  if (!message.is_resumable) say_unsaid(effects);
  effects.push_back(Tell{control::Ack{message.is_success}});
  drop_fetch(effects);
  if (state_ == State::Starting) state_ = State::Stopped;  // nothing is started any more
  if (state_ == State::Running)
    stop_workers(options_.stop_grace, false, effects);  // it went on without us
}

void Agent::on(Instant, const control::Bye&, Effects& effects) {
  if (decided_) go(effects);
}

// The outcome is known. Workers of a round that went on without this node are gone first (R4).
void Agent::go(Effects& effects) {
  is_going_ = true;
  if (is_leaving()) return;  // by itself
  if (state_ == State::Running) stop_workers(options_.stop_grace, false, effects);
  if (has_workers()) return;
  effects.push_back(Disconnect{false});
  finish(Finish{}, effects);
}

// Without a `how` of its own the decision is the outcome (R9).
void Agent::finish(Finish how, Effects& effects) {
  if (decided_ && how.how == Finish::How::Success && !decided_->is_success) {
    how.how = decided_->is_resumable ? Finish::How::Stopped : Finish::How::Failure;
    how.text = decided_->verdict;
  }
  if (!snapshots_.empty()) how.snapshot = snapshots_.front();
  how.ends = failed_ends_;
  const bool is_hang = decided_ && decided_->culprit && decided_->culprit->end.is_hang();
  how.restarts_used = is_hang ? world_.hang_restarts : world_.restart_count;
  how.operator_restarts = world_.operator_restarts;
  how.signal = signal_;
  how.decision = decided_;
  how.ran_no_worker = world_.round == RoundNumber();
  state_ = State::Ended;
  effects.push_back(std::move(how));
}

void Agent::on_signal(Instant now, int signal, Effects& effects) {
  if (state_ == State::Ended) return;
  if (is_leaving()) {
    if (hurries(signal)) leave_at_once(effects);
    return;
  }
  signal_ = signal;
  asked_at_ = now;
  if (signal == kSigTerm) return on_request(now, effects);
  if (!has_workers()) return leave(effects);
  state_ = State::Leaving;
  effects.push_back(StopWorkers{signal, options_.stop_grace});
}

// SIGTERM, the first one.
void Agent::on_request(Instant now, Effects& effects) {
  if (state_ == State::Running) return drain(effects);
  if (state_ == State::Stopping && is_drained_) {  // the workers save for another node's sake
    state_ = State::Draining;
    effects.push_back(Tell{control::Draining{world_.round}});
  } else if (state_ == State::Stopping) {  // they have got SIGTERM and their grace
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

// No worker runs here, and none was stopped for a request: SIGTERM loses nothing.
void Agent::leave(Effects& effects) {
  const bool is_kept = signal_ == kSigTerm && !is_failing();
  effects.push_back(Tell{control::Leave{is_kept ? "asked to stop" : "ended by a signal", is_kept}});
  effects.push_back(Disconnect{false});
  if (signal_ == kSigTerm && decided_) return finish(Finish{}, effects);
  Finish how;
  how.how = is_kept ? Finish::How::Stopped : Finish::How::Signal;
  how.text = waited_for();
  finish(std::move(how), effects);
}

// The newest round ended by a failure after which there is no other round.
bool Agent::is_failing() const {
  const bool is_fatal = unreported_ && unreported_->is_fatal;
  const bool has_failed = unreported_ || charged_ != control::Charge::None;
  const bool is_hang =
      charged_ == control::Charge::Hang || (unreported_ && unreported_->end.is_hang());
  const int64_t used = is_hang ? world_.hang_restarts : world_.restart_count;
  return is_fatal || (has_failed && used >= world_.max_restarts);
}

// ---------------------------------------------------------------- stopping on request

// An operator has asked. Told again it hurries nothing; a real signal does.
void Agent::on(Instant now, const control::Depart& message, Effects& effects) {
  if (is_leaving() || decided_) return;
  effects.push_back(Note{Note::Level::Info, message.why});
  on_signal(now, message.saves ? kSigTerm : kSigInt, effects);
}

// The coordinator hears of it first, so that what happens elsewhere is no failure.
void Agent::drain(Effects& effects) {
  state_ = State::Draining;
  is_drained_ = true;
  effects.push_back(Tell{control::Draining{world_.round}});
  effects.push_back(StopWorkers{kSigTerm, options_.stop_grace, true});
}

// It has lost nothing to a request to stop, and goes on when it is started again.
bool Agent::is_resumable(const WorkerEnd& end) const {
  return end.exit_code == kStoppedResumable || unstepped_.contains(end.local_rank.value);
}

// Every worker's work is saved, or was done, or had not begun.
bool Agent::has_saved() const {
  auto is_well = [this](const WorkerEnd& end) { return end.is_success() || is_resumable(end); };
  return is_drained_ && std::all_of(ends_.begin(), ends_.end(), is_well);
}

// Workers save together: when one has failed, the others can't.
void Agent::on_failed_save(const WorkerEnd& end, Effects& effects) {
  const bool is_saving = state_ == State::Draining || state_ == State::Stopping;
  if (!is_saving || end.is_success() || end.exit_code == kStoppedResumable) return;
  effects.push_back(EndSaving{kSigTerm});
}

// The workers have saved for another node's sake, and ended; now we are asked as well.
void Agent::leave_stopped(Instant now, Effects& effects) {
  state_ = State::Saved;
  leave_at_ = now + limits::kLastLook;
  wants_port_for_stopped_ = false;
  if (!std::exchange(wants_scan_for_stopped_, false)) leave_after_drain(effects);
}

void Agent::leave_after_drain(Effects& effects) {
  const auto goes_on = [this](const WorkerEnd& end) { return is_resumable(end); };
  const auto is_saved = [](const WorkerEnd& end) { return end.exit_code == kStoppedResumable; };
  const bool is_kept = has_saved() && std::any_of(ends_.begin(), ends_.end(), goes_on);
  effects.push_back(Tell{control::Leave{"asked to stop", has_saved()}});
  effects.push_back(Disconnect{false});
  Finish how;
  how.how = is_kept ? Finish::How::Stopped : Finish::How::Signal;
  how.has_saved = is_kept && std::any_of(ends_.begin(), ends_.end(), is_saved);
  if (is_kept) how.stays_until = asked_at_ + options_.stop_grace;
  finish(std::move(how), effects);
}

// What looked like a failure here is one.
void Agent::say_unsaid(Effects& effects) {
  if (unsaid_) effects.push_back(*unsaid_);
  unsaid_.reset();
}

// ---------------------------------------------------------------- snapshots

void Agent::on_snapshots(Instant, std::vector<control::SnapshotName> snapshots, Effects& effects) {
  const bool is_new = snapshots != snapshots_;
  snapshots_ = std::move(snapshots);
  if (state_ == State::Saved) return leave_after_drain(effects);
  if (std::exchange(wants_scan_for_stopped_, false)) return say_stopped_if_known(effects);
  if (is_new && is_connected_) effects.push_back(Tell{newest_here()});
}

// What could not be used is said with each, so that a cut loses it only for a while.
control::Snapshots Agent::newest_here() const {
  return {snapshots_, fell_back_ ? world_.resume->snapshot.id : ""};
}

void Agent::on_fell_back(int64_t step, Effects& effects) {
  if (!world_.resume || std::exchange(fell_back_, true)) return;
  const control::SnapshotName& chosen = world_.resume->snapshot;
  const std::string instead =
      step < 0 ? "training begins anew" : "training goes on from step " + std::to_string(step);
  effects.push_back(Note{
      Note::Level::Warning,
      "the snapshot of step " + std::to_string(chosen.step) + " could not be used, " + instead});
  if (is_connected_) effects.push_back(Tell{newest_here()});
}

void Agent::on_fetched(Instant now, Effects& effects) {
  if (!std::exchange(is_fetching_, false)) return;
  if (!is_seeking_) join_deadline_ = now + options_.join_timeout;
  start_if_granted(now, effects);
}

void Agent::on_shares_sought(Instant now, Effects& effects) {
  if (!std::exchange(is_seeking_, false)) return;
  if (!is_fetching_) join_deadline_ = now + options_.join_timeout;
  start_if_granted(now, effects);
}

void Agent::drop_fetch(Effects& effects) {
  const bool is_fetching = std::exchange(is_fetching_, false);
  const bool is_seeking = std::exchange(is_seeking_, false);
  if (is_fetching || is_seeking) effects.push_back(DropFetch{});
}

void Agent::on_fetch_failed(Instant now, const Error& error, bool is_damaged, Effects& effects) {
  if (!std::exchange(is_fetching_, false)) return;
  drop_fetch(effects);  // shares that are still sought
  effects.push_back(Note{Note::Level::Warning, error.text});
  unreported_ = control::Failed{world_.round, WorkerEnd{}, false, error.text,
                                is_damaged ? world_.resume->snapshot.id : ""};
  effects.push_back(Tell{*unreported_});
  become_stopped(now, effects);
}

// ---------------------------------------------------------------- the coordinator is dead

// By I1 no coordinator has counted us as lost yet, and we have not said that we have stopped: there
// is no later round.
bool Agent::has_grant(Instant now) const {
  const bool is_in_round =
      state_ == State::Starting || state_ == State::Running || state_ == State::Stopping;
  return is_in_round && is_fenced() && now < grant_.deadline();
}

// Our grant holds, so nobody has gone on without us, and no other heir was named (R16).
void Agent::on_refused(Instant now, const std::vector<Endpoint>& places, Effects& effects) {
  const bool is_ours = std::find(places.begin(), places.end(), led_by_) != places.end();
  if (state_ == State::Ended || is_leading_ || is_connected_ || epoch_ == Epoch() || !is_ours) {
    return;
  }
  has_evidence_ = true;
  const bool is_going = decided_ || is_leaving();
  const bool is_granted = is_fenced() && now < grant_.deadline();
  if (!is_heir_ || !is_granted || is_going) return;
  is_leading_ = true;
  effects.push_back(
      Note{Note::Level::Warning, "the coordinator is dead; leading the job from this node"});
  effects.push_back(TakeOver{Epoch(epoch_.value + 1), *world_.heir});
}

// Who listens at the job's endpoint knows who leads it (R17).
void Agent::on(Instant, const control::Moved& message, Effects& effects) {
  const bool is_blank = world_.round == RoundNumber();
  if (is_leading_ || (message.epoch < epoch_ && !is_blank)) return;
  if (is_blank) epoch_ = Epoch();  // of a coordinator that never led the job
  is_deaf_ = knows_heir_ = true;
  effects.push_back(Routes{{Endpoint{message.address, static_cast<uint16_t>(message.port)}}, true});
  effects.push_back(Reconnect{});
}

// ---------------------------------------------------------------- the arbiter is etcd

void Agent::on_led_from(const Endpoint& place, Effects& effects) {
  if (state_ == State::Ended) return;
  effects.push_back(Routes{{place}, true});
  if (!is_connected_ || peer_ == place) return;
  is_deaf_ = true;
  effects.push_back(Reconnect{});
}

bool Agent::is_led(Instant now) const {
  return is_connected_ && is_welcomed_ && now < grant_.term_at();
}

bool Agent::would_lead() const {
  return !is_leaving() && state_ != State::Ended && !decided_;
}

// ---------------------------------------------------------------- time

void Agent::on_time(Instant now, Effects& effects) {
  if (state_ == State::Ended) return;
  // R11: first what must not live on, then everything else.
  if (state_ == State::Running && is_fenced() && now >= grant_.term_at()) {
    stop_past_grant(std::max(Duration{}, grant_.deadline() - now), effects);
  }
  if (is_past_fence(now)) {
    fence_killed_ = true;
    effects.push_back(StopWorkers{kSigKill, Duration{}});
  }
  if (now >= ping_at_) ping(now, effects);
  if (now >= patience_ends()) {
    heard_at_ = now;  // a cable, or a host that is gone: the kernel would try for many minutes
    effects.push_back(Note{Note::Level::Info, "the coordinator is silent; connecting again"});
    effects.push_back(Reconnect{!is_welcomed_});
  }
  if (state_ == State::Saved && now >= leave_at_) return leave_after_drain(effects);
  if (now >= join_deadline_ && !is_spare_) give_up_joining(effects);
}

Instant Agent::next_deadline() const {
  if (state_ == State::Ended) return Instant::never();
  Instant next = ping_at_;
  if (!is_spare_) next = std::min(next, join_deadline_);
  if (state_ == State::Saved) next = std::min(next, leave_at_);
  if (!is_welcomed_) next = std::min(next, patience_ends());  // else a ping comes first
  if (state_ == State::Running && is_fenced()) next = std::min(next, grant_.term_at());
  if (is_stopping_under_fence()) next = std::min(next, grant_.deadline());
  return next;
}

// Who has not been welcomed may wait at the wrong place, for a coordinator that is not to lead
// (R17).
Instant Agent::patience_ends() const {
  if (!is_connected_) return Instant::never();
  if (!is_welcomed_) return heard_at_ + options_.facts.terms.lease * 2;
  return is_fenced() ? heard_at_ + lease_ : Instant::never();
}

// Workers that are being stopped, with whatever grace, must be gone at the deadline.
bool Agent::is_stopping_under_fence() const {
  bool is_stopping =
      state_ == State::Stopping || state_ == State::Leaving || state_ == State::Draining;
  return is_stopping && is_fenced() && !fence_killed_;
}

bool Agent::is_past_fence(Instant now) const {
  return is_stopping_under_fence() && now >= grant_.deadline();
}

}  // namespace cpprun::agent
