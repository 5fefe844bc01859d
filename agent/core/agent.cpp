#include "agent/core/agent.hpp"

#include <algorithm>
#include <utility>

#include "common/check.hpp"
#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/election.hpp"
#include "common/limits/faults.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun::agent {
namespace {

constexpr int kSigTerm = 15;

Endpoint place_of(const control::Standby& standby) {
  return Endpoint{standby.address, static_cast<uint16_t>(standby.port)};
}

}  // namespace

void Agent::start(Instant now, Effects& effects) {
  join_deadline_ = now + options_.join_timeout;
  effects.push_back(ReservePort{});
  if (options_.facts.has_snapshot_dir) effects.push_back(ScanSnapshots{});
}

bool Agent::has_workers() const {
  return state_ == State::Running || state_ == State::Stopping || state_ == State::Leaving ||
         state_ == State::Draining;
}

// ---------------------------------------------------------------- connection

control::ReportedPhase Agent::reported_phase() const {
  // The agent sends Failed or Stopped right after registering; until then the round still runs.
  if (unreported_failure_ || is_stopped_unreported()) return control::ReportedPhase::Running;
  switch (state_) {
    case State::Joining:
      return control::ReportedPhase::Idle;
    case State::Starting:
    case State::Running:
    case State::Stopping:
    case State::Leaving:
    case State::Draining:
    case State::Saved:
      return control::ReportedPhase::Running;
    case State::Stopped:
      return control::ReportedPhase::Stopped;
    case State::Done:
      return control::ReportedPhase::Done;
    case State::Ended:
      return control::ReportedPhase::Idle;
  }
  return control::ReportedPhase::Idle;
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
  facts.has_worker_lease = has_worker_lease(now);
  facts.charged = charged_;
  facts.decided = job_result_;
  effects.push_back(SendMessage{hello});
  effects.push_back(SendMessage{facts});
  if (is_leased()) ping(now, effects);
  if (unreported_failure_) effects.push_back(SendMessage{*unreported_failure_});
  if (unreported_failure_ && state_ == State::Stopped && !is_stopped_unreported())
    send_stopped(effects);
}

void Agent::on_disconnected(Instant now, Effects& effects) {
  is_connected_ = false;
  ping_at_ = Instant::never();
  worker_lease_.on_disconnected();
  if (state_ == State::Ended) return;
  if (job_result_) {
    finish_job(effects);
    return;
  }
  // A disconnect does not restart a running join timeout. If it did, a peer that accepts and hangs
  // up would keep the agent waiting for ever.
  bool is_new_wait = is_spare_ || (state_ == State::Done && join_deadline_.is_never());
  if (is_new_wait && !has_workers()) join_deadline_ = now + options_.join_timeout;
  is_spare_ = false;
  effects.push_back(LogEvent{LogEvent::Level::Info, "the connection to the coordinator broke"});
}

void Agent::on_unreachable(Instant, const Error& error, Effects& effects) {
  if (state_ == State::Ended) return;
  finish(Finish{Finish::How::Error, 0, error.text, {}, 0}, effects);
}

void Agent::on_message(Instant now, const control::CoordinatorMessage& message, Effects& effects) {
  if (state_ == State::Ended || ignores_connection_) return;
  last_message_at_ = now;
  std::visit([&](const auto& m) { on(now, m, effects); }, message);
}

void Agent::on(Instant now, const control::Registered& message, Effects& effects) {
  if (message.term < term_) {  // the job has had a newer coordinator since (R13)
    ignores_connection_ = true;
    if (!std::exchange(has_warned_, true)) {
      effects.push_back(LogEvent{LogEvent::Level::Warning,
                                 "the coordinator has an older term than one before it; was the "
                                 "clock of its host set back?"});
    }
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
    if (has_workers()) effects.push_back(SetWorkerLease{Instant::never()});
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
  if (state_ == State::Running && is_leased() && now >= worker_lease_.deadline()) {
    stop_past_worker_lease(Duration{}, effects);
  }
  const bool is_longer = worker_lease_.on_pong(message.seq, message.worker_lease);
  ping_sooner(now);
  if (!is_longer || !is_leased()) return;
  if (has_workers()) effects.push_back(SetWorkerLease{worker_lease_.deadline()});
  if (state_ == State::Starting) start_if_leased(now, effects);
}

// ---------------------------------------------------------------- rounds

void Agent::on(Instant now, const control::RankAssignment& message, Effects& effects) {
  bool may_start = state_ == State::Joining || state_ == State::Stopped;
  if (!may_start || message.round <= assignment_.round || message.term < term_) return;  // R1
  assignment_ = message;
  ends_.clear();
  unstepped_.clear();
  hung_.reset();
  unreported_failure_.reset();  // that round is over
  is_spare_ = false;
  is_drained_ = false;
  fell_back_ = false;
  charged_ = control::RestartCharge::None;
  held_failure_.reset();
  lost_.clear();
  state_ = State::Starting;
  is_standby_ = assignment_.standby && assignment_.standby->node == options_.hello.node.incarnation;
  if (!is_leading_ && is_leased() && !options_.is_led_by_election) {
    const bool is_elsewhere = assignment_.standby && !is_standby_;
    effects.push_back(is_elsewhere ? Routes{{place_of(*assignment_.standby)}} : Routes{});
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
// assignment.
void Agent::start_if_leased(Instant now, Effects& effects) {
  if (is_fetching_ || is_fetching_replicas_ || (is_leased() && worker_lease_.sigterm_at() <= now))
    return;
  state_ = State::Running;
  join_deadline_ = Instant::never();
  lease_killed_ = false;
  effects.push_back(SetWorkerLease{is_leased() ? worker_lease_.deadline() : Instant::never()});
  effects.push_back(StartWorkers{assignment_});
  effects.push_back(SendMessage{control::Started{assignment_.round}});
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

void Agent::stop_workers(Duration grace, bool lets_save, Effects& effects) {
  state_ = State::Stopping;
  effects.push_back(StopWorkers{kSigTerm, grace, lets_save});
}

// Other nodes may form a round without this node from now on. This is no worker's failure, and no
// restart budget is charged.
void Agent::stop_past_worker_lease(Duration grace, Effects& effects) {
  effects.push_back(
      LogEvent{LogEvent::Level::Warning,
               "the coordinator has not answered in time; stopping the workers, since "
               "the others may go on without this node"});
  stop_workers(grace, false, effects);
}

void Agent::on_worker_exit(Instant now, const WorkerExit& end, Effects& effects) {
  ends_.push_back(end);
  if (hung_ && hung_->local_rank == end.local_rank) ends_.back().hang = hung_->hang;
  if (is_drained_) return on_failed_save(end, effects);
  if (end.is_success() || state_ != State::Running) return;
  // The agent was frozen, and the reaper process killed the workers (R11).
  if (is_leased() && now >= worker_lease_.deadline()) {
    stop_past_worker_lease(Duration{}, effects);
    return;
  }
  // Stop the other workers at once, without waiting for the coordinator. A worker that exits with
  // kStoppedResumable shows that another node drains; the coordinator's Stop is on its way, and the
  // other workers here save as well.
  const bool is_on_request = end.exit_code == kStoppedResumable;
  stop_workers(options_.stop_grace, is_on_request, effects);
  held_failure_ = FirstFailure{end, assignment_};
  if (!is_on_request) flush_held_failure(effects);
  unreported_failure_ = control::Failed{assignment_.round, for_the_wire(end), false};
  unreported_failure_->sent_at = now;
  effects.push_back(SendMessage{*unreported_failure_});
}

void Agent::on_hang(Instant now, const WorkerExit& hung, Effects& effects) {
  if (state_ != State::Running) return;  // the round is being stopped for another reason
  if (is_leased() && now >= worker_lease_.deadline())
    return stop_past_worker_lease(Duration{}, effects);
  hung_ = hung;
  stop_workers(options_.stop_grace, false, effects);
  effects.push_back(FirstFailure{hung, assignment_});
  unreported_failure_ = control::Failed{assignment_.round, for_the_wire(hung), false};
  effects.push_back(SendMessage{*unreported_failure_});
}

void Agent::keep_failed_ends() {
  auto is_failure = [this](const WorkerExit& end) { return !end.is_success() && !is_drained_; };
  if (std::any_of(ends_.begin(), ends_.end(), is_failure)) failed_ends_ = ends_;
}

void Agent::on_all_workers_gone(Instant now, Effects& effects) {
  keep_failed_ends();
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
        finish_job(effects);
        return;
      }
      become_stopped(now, effects);
      return;
    case State::Leaving:
      return leave(effects);
    case State::Draining:
      state_ = State::Saved;
      if (!options_.facts.has_snapshot_dir) return leave_after_drain(effects);
      leave_at_ = now + limits::kFinalScanTimeout;
      effects.push_back(ScanSnapshots{});
      return;
    default:
      CPPRUN_CHECK(false);
  }
}

// A process that survives SIGKILL runs no code of its own any more, so the other nodes may form a
// new round (R2). It still holds its resources (GPU, files, ports), so this node starts no worker
// beside it.
void Agent::on_stuck(const std::string& what, Effects& effects) {
  if (state_ == State::Ended) return;
  const bool has_all_ends = static_cast<int64_t>(ends_.size()) >= options_.facts.nproc;
  keep_failed_ends();
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
}

void Agent::on_port(Instant, int64_t port, Effects& effects) {
  port_ = port;
  if (std::exchange(wants_port_for_stopped_, false)) send_stopped_if_known(effects);
}

void Agent::send_stopped_if_known(Effects& effects) {
  if (!is_stopped_unreported() && state_ == State::Stopped) send_stopped(effects);
}

void Agent::send_stopped(Effects& effects) {
  effects.push_back(SendMessage{
      control::Stopped{assignment_.round, port_, snapshots_, has_saved(), own_failure()}});
}

// The first exit with a cause of its own on this node; it may have come just before the stop.
std::optional<WorkerExit> Agent::own_failure() const {
  const bool is_own = std::any_of(ends_.begin(), ends_.end(), has_own_cause);
  if (!is_own || is_drained_) return std::nullopt;
  return for_the_wire(ends_[root_cause_index(ends_)]);
}

void Agent::on(Instant, const control::Refused& message, Effects& effects) {
  effects.push_back(Disconnect{has_workers()});
  std::string text = "the coordinator refused this agent: " + message.why;
  if (message.occupant) text = occupied_error(*message.occupant);
  finish(Finish{Finish::How::Error, 0, std::move(text), {}, 0}, effects);
}

// Another job occupies the endpoint: the user gave no --rdzv-id, and both jobs have the default
// one.
std::string Agent::occupied_error(const control::Occupant& by) const {
  const std::string host = text::one_line(by.host, limits::kNameBytes);
  const std::string pid = by.pid > 0 ? "pid " + std::to_string(by.pid) : "another agent";
  const std::string where = host == options_.hello.node.name ? "" : " on " + host;
  return "job '" + options_.hello.run_id + "' already runs at " + options_.endpoint + " (" + pid +
         where + ")" + "; give --rdzv-id=NAME to run another job there";
}

// ---------------------------------------------------------------- waiting, hosting, giving up

void Agent::on(Instant now, const control::Wait& message, Effects& effects) {
  const bool is_new_wait = is_spare_ && !message.is_spare && !has_workers();
  if (is_new_wait) join_deadline_ = now + options_.join_timeout;
  is_spare_ = message.is_spare;
  knows_standby_ = message.standby.has_value();
  // A spare node may wait for as long as the job runs and shows no other sign of life, so its user
  // sees this line.
  const bool is_news = message.is_spare && message.why != last_wait_;
  const auto level =
      message.is_reminder || is_news ? LogEvent::Level::Warning : LogEvent::Level::Info;
  last_wait_ = message.why;
  if (message.standby && !is_leading_ && is_leased()) {
    const control::Standby& standby = *message.standby;
    effects.push_back(Routes{{Endpoint{standby.address, static_cast<uint16_t>(standby.port)}}});
  }
  effects.push_back(LogEvent{level, "waiting: " + message.why});
}

// What a node that was in no round yet waits for; "" otherwise.
std::string Agent::waited_for() const {
  if (state_ != State::Joining || assignment_.round != RoundNumber()) return "";
  if (!is_connected_) return "while waiting for the coordinator; no worker was started";
  const std::string what = last_wait_.empty() ? "for the first round" : "(" + last_wait_ + ")";
  return "while waiting " + what + "; no worker was started";
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
  std::string text = "timed out after " +
                     std::to_string(static_cast<int64_t>(to_seconds(options_.join_timeout))) +
                     " s without a round";
  if (!is_connected_) text += ": no connection to the coordinator";
  if (is_connected_ && !last_wait_.empty()) text += ": " + last_wait_;
  if (!lost_.empty()) text += "; the last round ended because " + lost_ + " [class=lost_node]";
  if (state_ == State::Done) text += "; the workers here ended well, the job's outcome is unknown";
  text += " (--rdzv-conf=join_timeout=SECONDS waits longer)";
  effects.push_back(SendMessage{control::Leave{"the join timeout was reached"}});
  effects.push_back(Disconnect{false});
  Finish how{Finish::How::Error, 0, text, {}, lost_.empty() ? 0 : assignment_.restart_count};
  how.lost = lost_;
  finish(std::move(how), effects);
}

}  // namespace cpprun::agent
