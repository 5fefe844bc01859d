#include "agent/core/agent.hpp"

#include <algorithm>
#include <utility>

#include "common/check.hpp"
#include "common/limits.hpp"
#include "common/text.hpp"

namespace cpprun::agent {
namespace {

constexpr int kSigTerm = 15;
constexpr int kSigKill = 9;

// What fits into one frame: the error's texts and last lines are cut.
WorkerEnd for_the_wire(WorkerEnd end) {
  if (end.error) {
    end.error->message.resize(std::min(end.error->message.size(), limits::kSummaryTextBytes));
    end.error->traceback.resize(std::min(end.error->traceback.size(), limits::kSummaryTextBytes));
  }
  size_t room = limits::kSummaryTextBytes;
  std::vector<std::string> kept;
  for (auto line = end.last_lines.rbegin(); line != end.last_lines.rend(); ++line) {
    if (line->size() > room) break;
    room -= line->size();
    kept.insert(kept.begin(), *line);
  }
  end.last_lines = std::move(kept);
  return end;
}

}  // namespace

void Agent::start(Instant now, Effects& effects) {
  join_deadline_ = now + options_.join_timeout;
  effects.push_back(WantPort{});
}

bool Agent::has_workers() const {
  return state_ == State::Running || state_ == State::Stopping || state_ == State::Leaving;
}

// ---------------------------------------------------------------- the connection

control::Standing Agent::standing() const {
  if (unreported_) return control::Standing::Running;  // the failure is told next, then "stopped"
  switch (state_) {
    case State::Joining:
      return control::Standing::Idle;
    case State::Starting:
    case State::Running:
    case State::Stopping:
    case State::Leaving:
      return control::Standing::Running;
    case State::Stopped:
      return control::Standing::Stopped;
    case State::Done:
      return control::Standing::Done;
    case State::Ended:
      return control::Standing::Idle;
  }
  return control::Standing::Idle;
}

void Agent::on_connected(Instant now, std::vector<std::string> addresses, Effects& effects) {
  CPPRUN_CHECK(!is_connected_);
  is_connected_ = true;
  heard_at_ = now;
  control::Hello hello = options_.hello;
  hello.connection = ++connection_;
  control::Register facts = options_.facts;
  facts.addresses = std::move(addresses);
  facts.reserved_port = port_;
  facts.standing = standing();
  facts.round = world_.round;
  facts.epoch = epoch_;
  effects.push_back(Tell{hello});
  effects.push_back(Tell{facts});
  if (is_fenced()) ping(now, effects);
  if (unreported_) effects.push_back(Tell{*unreported_});
  if (unreported_ && state_ == State::Stopped) {
    effects.push_back(Tell{control::Stopped{world_.round, port_}});
  }
}

void Agent::on_disconnected(Instant now, Effects& effects) {
  is_connected_ = false;
  ping_at_ = Instant::never();
  grant_.on_disconnected();
  if (state_ == State::Ended) return;
  if (decided_) {
    go(effects);
    return;
  }
  // A wait that goes on goes on; else whoever accepts and hangs up would keep us for ever.
  bool is_new_wait = is_spare_ || (state_ == State::Done && join_deadline_.is_never());
  if (is_new_wait && !has_workers()) join_deadline_ = now + options_.join_timeout;
  is_spare_ = false;
  effects.push_back(Note{Note::Level::Info, "the connection to the coordinator broke"});
}

void Agent::on_unreachable(Instant, const Error& error, Effects& effects) {
  if (state_ == State::Ended) return;
  finish(Finish{Finish::How::Error, 0, error.text, {}, 0}, effects);
}

void Agent::on_message(Instant now, const control::CoordinatorMessage& message, Effects& effects) {
  if (state_ == State::Ended) return;
  heard_at_ = now;
  std::visit([&](const auto& m) { on(now, m, effects); }, message);
}

void Agent::on(Instant now, const control::Welcome& message, Effects& effects) {
  epoch_ = std::max(epoch_, message.epoch);
  bool was_fenced = is_fenced();
  heartbeat_ = message.heartbeat;
  lease_ = message.lease;
  if (state_ == State::Done) join_deadline_ = Instant::never();  // the others may take their time
  if (is_fenced() && !was_fenced) ping(now, effects);
}

void Agent::on(Instant, const control::Refused& message, Effects& effects) {
  effects.push_back(Disconnect{has_workers()});
  finish(Finish{Finish::How::Error, 0, "the coordinator refused this agent: " + message.why, {}, 0},
         effects);
}

void Agent::on(Instant now, const control::Wait& message, Effects& effects) {
  bool is_new_wait = is_spare_ && !message.is_spare && !has_workers();
  if (is_new_wait) join_deadline_ = now + options_.join_timeout;
  is_spare_ = message.is_spare;
  auto level = message.is_reminder ? Note::Level::Warning : Note::Level::Info;
  last_wait_ = message.why;
  effects.push_back(Note{level, "waiting: " + message.why});
}

// ---------------------------------------------------------------- the grant

void Agent::ping(Instant now, Effects& effects) {
  effects.push_back(Tell{control::Ping{grant_.on_ping_sent(now)}});
  ping_at_ = now + heartbeat_;
}

void Agent::on(Instant now, const control::Pong& message, Effects& effects) {
  // R11: an answer that lay unread past the deadline does not bring back whom the guardian killed.
  if (state_ == State::Running && is_fenced() && now >= grant_.deadline()) {
    stop_past_grant(Duration{}, effects);
  }
  if (!grant_.on_pong(message.seq, message.grant)) return;
  if (has_workers()) effects.push_back(Fence{grant_.deadline()});
  if (state_ == State::Starting) start_if_granted(now, effects);
}

// ---------------------------------------------------------------- rounds

void Agent::on(Instant now, const control::World& message, Effects& effects) {
  bool may_start = state_ == State::Joining || state_ == State::Stopped;
  if (!may_start || message.round <= world_.round || message.epoch < epoch_) return;  // R1
  world_ = message;
  ends_.clear();
  unreported_.reset();  // the round that it ended is over
  is_spare_ = false;
  state_ = State::Starting;
  start_if_granted(now, effects);
}

// Workers may only live under a grant (R6); the first pong may come a moment after the world.
void Agent::start_if_granted(Instant now, Effects& effects) {
  if (is_fenced() && grant_.term_at() <= now) return;
  state_ = State::Running;
  join_deadline_ = Instant::never();
  fence_killed_ = false;
  effects.push_back(Fence{is_fenced() ? grant_.deadline() : Instant::never()});
  effects.push_back(StartWorkers{world_});
  effects.push_back(Tell{control::Started{world_.round}});
}

void Agent::on_start_failed(Instant now, const Error& error, Effects& effects) {
  effects.push_back(Note{Note::Level::Warning, error.text});
  if (state_ != State::Running) {  // a stop was quicker; there is nothing to wait for
    if (has_workers()) on_quiet(now, effects);
    return;
  }
  effects.push_back(Fence{Instant::never()});
  unreported_ = control::Failed{world_.round, WorkerEnd{}, true};
  effects.push_back(Tell{*unreported_});
  become_stopped(now, effects);
}

void Agent::stop_workers(Duration grace, Effects& effects) {
  state_ = State::Stopping;
  effects.push_back(StopWorkers{kSigTerm, grace});
}

// The others may go on without this node: no failure of a worker, and charged to nobody.
void Agent::stop_past_grant(Duration grace, Effects& effects) {
  effects.push_back(Note{Note::Level::Warning,
                         "the coordinator has not answered in time; stopping the workers, since "
                         "the others may go on without this node"});
  stop_workers(grace, effects);
}

void Agent::on_worker_end(Instant now, const WorkerEnd& end, Effects& effects) {
  ends_.push_back(end);
  if (end.is_success() || state_ != State::Running) return;
  if (is_fenced() && now >= grant_.deadline()) {  // R11: we were frozen, the guardian was not
    stop_past_grant(Duration{}, effects);
    return;
  }
  stop_workers(options_.stop_grace, effects);  // at once, without waiting for the coordinator
  effects.push_back(FirstFailure{end, world_});
  unreported_ = control::Failed{world_.round, for_the_wire(end), false};
  effects.push_back(Tell{*unreported_});
}

void Agent::on_quiet(Instant now, Effects& effects) {
  auto is_failure = [](const WorkerEnd& end) { return !end.is_success(); };
  if (std::any_of(ends_.begin(), ends_.end(), is_failure)) failed_ends_ = ends_;
  effects.push_back(Fence{Instant::never()});
  switch (state_) {
    case State::Running:
      state_ = State::Done;
      if (!is_connected_) join_deadline_ = now + options_.join_timeout;
      effects.push_back(Tell{control::Done{world_.round}});
      return;
    case State::Stopping:
      if (is_going_) {
        state_ = State::Stopped;
        go(effects);
        return;
      }
      become_stopped(now, effects);
      return;
    case State::Leaving:
      effects.push_back(Tell{control::Leave{"ended by a signal"}});
      effects.push_back(Disconnect{false});
      finish(Finish{Finish::How::Signal, signal_, "", {}, 0}, effects);
      return;
    default:
      CPPRUN_CHECK(false);
  }
}

// The port for the next round comes first; on_port() then says "stopped".
void Agent::become_stopped(Instant now, Effects& effects) {
  state_ = State::Stopped;
  join_deadline_ = now + options_.join_timeout;
  wants_port_for_stopped_ = true;
  effects.push_back(WantPort{});
}

void Agent::on_port(Instant, int64_t port, Effects& effects) {
  port_ = port;
  if (!std::exchange(wants_port_for_stopped_, false)) return;
  effects.push_back(Tell{control::Stopped{world_.round, port_}});
}

void Agent::on(Instant now, const control::Stop& message, Effects& effects) {
  if (message.round != world_.round) return;
  if (message.cause == control::StopCause::Failure) unreported_.reset();  // it is known
  switch (state_) {
    case State::Starting:
    case State::Done:
      become_stopped(now, effects);
      return;
    case State::Running:
      effects.push_back(Note{Note::Level::Info, "stopping the workers: " + message.why});
      stop_workers(options_.stop_grace, effects);
      return;
    case State::Stopped:
      effects.push_back(Tell{control::Stopped{world_.round, port_}});
      return;
    default:
      return;
  }
}

// ---------------------------------------------------------------- the end

void Agent::on(Instant, const control::Decided& message, Effects& effects) {
  decided_ = message;
  effects.push_back(Tell{control::Ack{message.is_success}});
  if (state_ == State::Starting) state_ = State::Stopped;  // nothing is started any more
  if (state_ == State::Running)
    stop_workers(options_.stop_grace, effects);  // it went on without us
}

void Agent::on(Instant, const control::Bye&, Effects& effects) {
  if (decided_) go(effects);
}

// The outcome is known. Workers of a round that went on without this node are gone first (R4).
void Agent::go(Effects& effects) {
  is_going_ = true;
  if (state_ == State::Leaving) return;
  if (state_ == State::Running) stop_workers(options_.stop_grace, effects);
  if (has_workers()) return;
  effects.push_back(Disconnect{false});
  finish(Finish{}, effects);
}

// Without a `how` of its own the decision is the outcome (R9).
void Agent::finish(Finish how, Effects& effects) {
  if (decided_ && how.how == Finish::How::Success && !decided_->is_success) {
    how.how = Finish::How::Failure;
    how.text = decided_->verdict;
  }
  how.ends = failed_ends_;
  how.restarts_used = world_.restart_count;
  state_ = State::Ended;
  effects.push_back(std::move(how));
}

void Agent::on_signal(Instant, int signal, Effects& effects) {
  switch (state_) {
    case State::Ended:
      return;
    case State::Leaving:
      effects.push_back(StopWorkers{kSigKill, Duration{}});
      return;
    case State::Running:
    case State::Stopping:
      state_ = State::Leaving;
      signal_ = signal;
      effects.push_back(StopWorkers{signal, options_.stop_grace});
      return;
    default:
      effects.push_back(Tell{control::Leave{"ended by a signal"}});
      effects.push_back(Disconnect{false});
      finish(Finish{Finish::How::Signal, signal, "", {}, 0}, effects);
  }
}

void Agent::give_up_joining(Effects& effects) {
  std::string text = "timed out after " +
                     std::to_string(static_cast<int64_t>(to_seconds(options_.join_timeout))) +
                     " s without a round";
  if (!is_connected_) text += ": no connection to the coordinator";
  if (is_connected_ && !last_wait_.empty()) text += ": " + last_wait_;
  if (state_ == State::Done) text += "; the workers here ended well, the job's outcome is unknown";
  text += " (--rdzv-conf=join_timeout=SECONDS waits longer)";
  effects.push_back(Tell{control::Leave{"the join timeout was reached"}});
  effects.push_back(Disconnect{false});
  finish(Finish{Finish::How::Error, 0, text, {}, 0}, effects);
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
  if (is_connected_ && is_fenced() && now >= heard_at_ + lease_) {
    heard_at_ = now;  // a cable, or a host that is gone: the kernel would try for many minutes
    effects.push_back(Note{Note::Level::Info, "the coordinator is silent; connecting again"});
    effects.push_back(Reconnect{});
  }
  if (now >= join_deadline_ && !is_spare_) give_up_joining(effects);
}

Instant Agent::next_deadline() const {
  if (state_ == State::Ended) return Instant::never();
  Instant next = ping_at_;
  if (!is_spare_) next = std::min(next, join_deadline_);
  if (state_ == State::Running && is_fenced()) next = std::min(next, grant_.term_at());
  if (is_stopping_under_fence()) next = std::min(next, grant_.deadline());
  return next;
}

// Workers that are being stopped, with whatever grace, must be gone at the deadline.
bool Agent::is_stopping_under_fence() const {
  bool is_stopping = state_ == State::Stopping || state_ == State::Leaving;
  return is_stopping && is_fenced() && !fence_killed_;
}

bool Agent::is_past_fence(Instant now) const {
  return is_stopping_under_fence() && now >= grant_.deadline();
}

}  // namespace cpprun::agent
