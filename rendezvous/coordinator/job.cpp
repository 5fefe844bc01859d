#include "rendezvous/coordinator/job.hpp"

#include <algorithm>

#include "common/failure/failure_summary.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun {

using control::ReportedPhase;
using control::StopCause;

namespace {

Error refuse(const std::string& why) {
  return Error{ErrorKind::Refused, why};
}

std::string range_of(const control::JobSpec& job_spec) {
  std::string min = std::to_string(job_spec.min_nodes);
  if (job_spec.min_nodes == job_spec.max_nodes) return min;
  return min + ":" + std::to_string(job_spec.max_nodes);
}

Node::WorkerPhase to_work(ReportedPhase reported_phase) {
  switch (reported_phase) {
    case ReportedPhase::Idle:
      return Node::WorkerPhase::Idle;
    case ReportedPhase::Running:
      return Node::WorkerPhase::Running;
    case ReportedPhase::Stopped:
      return Node::WorkerPhase::Stopped;
    case ReportedPhase::Done:
      return Node::WorkerPhase::Done;
  }
  return Node::WorkerPhase::Idle;
}

}  // namespace

Job::Job(JobOptions options, const control::JobSpec& job_spec, Effects& effects)
    : options_(std::move(options)),
      job_spec_(job_spec),
      term_(options_.term),
      restart_budget_(job_spec.max_restarts),
      hang_restart_budget_(job_spec.max_restarts),
      needs_proof_(options_.needs_proof) {
  if (options_.is_standby) {
    phase_ = Phase::Recovering;
    recovery_.emplace(Recovery{});
  }
  if (options_.leader_lease) {
    until_ = options_.leader_lease->until;
    if (options_.leader_lease->facts) restore_persisted_state(*options_.leader_lease->facts);
  }
  if (!job_spec_.is_store_on_main_port) effects.push_back(WantStorePort{options_.run_id});
}

// ---------------------------------------------------------------- joining

Status Job::check_registration(const Node* known, const control::Hello& hello,
                               const control::Register& message) const {
  if (message.nproc < 1 || message.nproc > limits::kWorkersPerNode) {
    return refuse("an agent must bring 1 to " + std::to_string(limits::kWorkersPerNode) +
                  " workers; this one brings " + std::to_string(message.nproc));
  }
  if (message.job_spec.min_nodes != job_spec_.min_nodes ||
      message.job_spec.max_nodes != job_spec_.max_nodes) {
    return refuse("this agent was started with --nnodes=" + range_of(message.job_spec) +
                  ", the job '" + options_.run_id + "' runs with --nnodes=" + range_of(job_spec_) +
                  "; start all agents with the same value");
  }
  if (known != nullptr && hello.token != known->key) {
    return refuse("another agent has the node id that it says, and this one shows another key");
  }
  if (known != nullptr && hello.connection <= known->connection) {
    return refuse("an agent with the same identity is connected already");
  }
  if (!known && static_cast<int64_t>(nodes_.size()) >= limits::kNodesPerJob) {
    return refuse("the job has " + std::to_string(limits::kNodesPerJob) +
                  " nodes, the most there can be");
  }
  if (!job_spec_.has_fixed_ranks) return {};
  int64_t rank = message.node_rank.value_or(0);
  if (rank < 0 || rank >= job_spec_.max_nodes) {
    return refuse("--node-rank=" + std::to_string(rank) +
                  " is not below --nnodes=" + std::to_string(job_spec_.max_nodes));
  }
  for (const auto& [incarnation, node] : nodes_) {
    // One that is cut off may be dead: its replacement waits for the end of its lease.
    if (&node != known && node.is_connected() && node.facts.node_rank == rank) {
      return refuse("--node-rank=" + std::to_string(rank) + " is taken by the agent on " +
                    node.id.name + "; give every agent its own");
    }
  }
  return {};
}

void Job::on_register(Instant now, SessionId session, const control::Hello& hello,
                      const control::Register& message, const SessionAddresses& facts,
                      Effects& effects) {
  auto it = nodes_.find(hello.node.incarnation);
  if (Status ok = check_registration(it == nodes_.end() ? nullptr : &it->second, hello, message);
      !ok) {
    effects.push_back(LogEvent{LogEvent::Level::Warning, "refused",
                               "refused the agent on " + hello.node.name + " (" +
                                   facts.peer_address + "): " + ok.error().text});
    effects.push_back(Send{session, control::Refused{ok.error().text}});
    effects.emplace_back(Close{session, false});
    return;
  }
  restore_from_report(now, message);
  Node& node = add_member(now, session, hello, message, facts, effects);
  if (is_recovering()) {
    adopt_reported_state(now, node, effects);
  } else {
    place_node(now, node, effects);
  }
  if (auto still = nodes_.find(hello.node.incarnation); still != nodes_.end()) {
    update_ready(still->second);
    if (shutdown_request_) send(still->second, *shutdown_request_, effects);
  }
  advance(now, effects);
}

Node& Job::add_member(Instant now, SessionId session, const control::Hello& hello,
                      const control::Register& message, const SessionAddresses& facts,
                      Effects& effects) {
  auto [it, is_new] = nodes_.try_emplace(hello.node.incarnation);
  Node& node = it->second;
  if (is_new) {
    node.arrival = ++arrivals_;
    node.came_at = now;
    arrived_at_ = now;
  }
  if (node.session) {  // the newer connection counts (R4)
    sessions_.erase(*node.session);
    effects.emplace_back(Close{*node.session, true});
  }
  node.id = hello.node;
  node.key = hello.token;
  node.connection = hello.connection;
  node.session = session;
  node.session_addresses = facts;
  node.liveness = Node::Liveness::Present;
  node.heard_at = now;
  node.unanswered.reset();
  node.is_embedded = options_.embedded == hello.node.incarnation;
  node.facts = message;
  if (node.is_embedded && node.is_draining()) is_host_drained_ = true;
  fault_quota_.learn(message.fault_counts);
  if (!is_recovering()) node.facts.assignment.reset();
  if (job_spec_.has_fixed_ranks) node.facts.node_rank = message.node_rank.value_or(0);
  node.worker_phase = to_work(message.reported_phase);
  if (has_missed_assignment(
          node)) {  // it was stopped when the round formed (R2), whatever else it says
    node.worker_phase =
        phase_ == Phase::Running ? Node::WorkerPhase::Starting : Node::WorkerPhase::Stopped;
  }
  sessions_[session] = hello.node.incarnation;
  if (!has_no_live_workers(node))
    next_lease_end_ = std::min(next_lease_end_, now + job_spec_.lease);
  if (!is_recovering()) confirm_registration(node, effects);
  return node;
}

void Job::confirm_registration(const Node& node, Effects& effects) const {
  control::Registered confirm_registration;
  confirm_registration.term = term_;
  confirm_registration.coordinator = options_.coordinator;
  confirm_registration.version = CPPRUN_VERSION;
  confirm_registration.is_standby = standby_ && standby_->node == node.id.incarnation;
  if (!has_no_live_workers(node)) {
    confirm_registration.heartbeat = heartbeat();
    confirm_registration.lease = job_spec_.lease;
  }
  send(node, confirm_registration, effects);
}

// Decides what a node that has just registered is told, by the phase of the job and by where it
// stands.
void Job::place_node(Instant now, Node& node, Effects& effects) {
  if (phase_ == Phase::Finishing || phase_ == Phase::Ended) {
    send(node, job_result_, effects);
    pending_.insert(node.id.incarnation);
    return;
  }
  if (is_member(node.id.incarnation)) {
    resume(node, effects);
    return;
  }
  if (node.worker_phase == Node::WorkerPhase::Running ||
      node.worker_phase == Node::WorkerPhase::Done) {
    stop_stale_workers(node, effects);
    return;
  }
  update_ready(node);
  if (phase_ == Phase::Running) grow_if_due(now, effects);
  if (phase_ == Phase::WaitingForNodes) try_form(now, effects);
  if (!is_member(node.id.incarnation) && !is_unwanted(node)) send_wait(node, false, effects);
}

// A member that registers again and has not seen the world of its round.
bool Job::has_missed_assignment(const Node& node) const {
  return is_member(node.id.incarnation) && node.facts.round < round_;
}

// A member of the current round is back (R1).
void Job::resume(Node& node, Effects& effects) {
  if (has_missed_assignment(node)) {
    pending_.erase(node.id.incarnation);  // a stop of that round would mean nothing to it
    if (phase_ == Phase::Running) send(node, assignments_.at(node.id.incarnation), effects);
    return;
  }
  if (phase_ == Phase::WaitingForNodes) {  // the round is over; it waits for the next
    if (!node.has_workers() && node.worker_phase != Node::WorkerPhase::Done) return;
    send(node, stop_of_round(StopCause::NodeLost, "the round is over"), effects);
    return;
  }
  if (node.worker_phase == Node::WorkerPhase::Running) {
    if (node.is_draining()) return request_drain(node, effects);
    if (phase_ != Phase::Stopping) return;
    send(node, stop_of_round(StopCause::NodeLost, "the round is over"), effects);
    return;
  }
  if (node.worker_phase == Node::WorkerPhase::Done) {
    on_done(node, node.facts.round, effects);
    return;
  }
  // Its worker lease ended while it was cut off, or it never started: this round can't go on with
  // it.
  pending_.erase(node.id.incarnation);
  request_stop(StopCause::NodeLost, node.id.name + " lost its workers while it was cut off",
               effects);
}

void Job::send_wait(const Node& node, bool is_reminder, Effects& effects) const {
  bool is_spare = phase_ == Phase::Running;
  const bool has_standby = standby_node() != nullptr && standby_node() != &node;
  send(node,
       control::Wait{why_no_round(), is_spare, is_reminder, has_standby ? standby_ : std::nullopt},
       effects);
}

// ---------------------------------------------------------------- what members say

Node* Job::find(SessionId session) {
  auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : &nodes_.at(it->second);
}

void Job::on_message(Instant now, SessionId session, const control::AgentMessage& message,
                     Effects& effects) {
  Node* node = find(session);
  CPPRUN_CHECK(node != nullptr);
  node->heard_at = now;
  Incarnation incarnation = node->id.incarnation;
  if (const auto* ping = std::get_if<control::Ping>(&message)) {
    if (is_recovering()) {  // R13: nothing is granted before it is known which round is the newest
      node->unanswered = ping->seq;
    } else {
      send(*node, control::Pong{ping->seq, worker_lease(now)}, effects);
    }
    turn_unwanted_away(effects);
    return;
  }
  if (const auto* told = std::get_if<control::Progress>(&message)) return node->take(*told);
  if (const auto* told = std::get_if<control::LogLines>(&message)) return node->take(*told);
  if (const auto* strike = std::get_if<control::FaultPermitRequest>(&message)) {
    on_fault_permit_request(*node, *strike, effects);
    return;
  }
  if (const auto* order = std::get_if<control::AdminCommand>(&message)) {
    reply_to_admin_command(now, *node, *order, effects);
    return;
  }
  if (const auto* started = std::get_if<control::Started>(&message)) {
    if (started->round == round_ && node->worker_phase == Node::WorkerPhase::Starting) {
      node->worker_phase = Node::WorkerPhase::Running;
    }
  } else if (const auto* failed = std::get_if<control::Failed>(&message)) {
    note_clock(now, *node, *failed);
    on_failed(*node, *failed, effects);
  } else if (const auto* done = std::get_if<control::Done>(&message)) {
    on_done(*node, done->round, effects);
  } else if (const auto* stopped = std::get_if<control::Stopped>(&message)) {
    on_stopped(*node, *stopped, effects);
  } else if (std::holds_alternative<control::Draining>(message)) {
    on_draining(*node, effects);
  } else if (const auto* snapshots = std::get_if<control::Snapshots>(&message)) {
    take_snapshots(*node, snapshots->snapshots);
    const bool is_resumes = resume_ && resume_->id == snapshots->unusable;
    if (is_resumes && is_member(incarnation)) unusable_.insert(resume_->id);
  } else if (const auto* leave = std::get_if<control::Leave>(&message)) {
    on_leave(*node, *leave, effects);
  } else if (std::holds_alternative<control::Ack>(message)) {
    on_ack(*node, effects);
  }
  if (auto it = nodes_.find(incarnation); it != nodes_.end()) update_ready(it->second);
  advance(now, effects);
}

// The asker is answered in any case; the others hear of what is injected, and before it does: it
// may be the death of the very process that we live in, and who leads then must know of it.
void Job::on_fault_permit_request(const Node& asker, const control::FaultPermitRequest& message,
                                  Effects& effects) {
  const std::optional<int64_t> count = fault_quota_.claim(message.fault, message.times);
  control::FaultPermit struck{message.fault, count.value_or(0), count.has_value()};
  struck.where = message.where;
  struck.step = message.step;
  struck.epoch = message.epoch;
  for (const auto& [incarnation, node] : nodes_) {
    if (struck.is_permitted && incarnation != asker.id.incarnation) send(node, struck, effects);
  }
  struck.is_answer = true;
  send(asker, struck, effects);
}

namespace {

// What went wrong before any worker ran; "" if one did.
std::string why_none_ran(const Node& node, const control::Failed& message) {
  if (message.is_fatal) {
    return "a worker could not be started on " + node.id.name +
           (message.why.empty() ? "" : ": " + message.why);
  }
  return message.why.empty() ? "" : message.why + ", says " + node.id.name;
}

}  // namespace

// What was to be fetched for this round is not what its manifest says. It is fetched no more, so
// this can't go on for ever.
bool Job::is_new_damage(const control::Failed& message) const {
  return resume_ && is_resume_fetched_ && resume_->id == message.damaged_snapshot;
}

void Job::on_failed(Node& node, const control::Failed& message, Effects& effects) {
  bool is_current = message.round == round_ && is_member(node.id.incarnation) &&
                    (phase_ == Phase::Running || phase_ == Phase::Stopping || is_recovering());
  if (!is_current) return;
  const std::string why = why_none_ran(node, message);
  const std::string what = describe(RootCause{node.id.name, message.end, why});
  if (is_new_damage(message)) {  // costs no restart: the next round begins with another
    damaged_.insert(message.damaged_snapshot);
    if (phase_ == Phase::Running) {
      effects.push_back(LogEvent{LogEvent::Level::Warning, "damaged_snapshot", what});
    }
    request_stop(StopCause::Snapshot, what, effects);
    return;
  }
  if (is_drained_ && !message.is_fatal) return;  // it follows from the stop that was asked for
  add_failure_candidate(node, message.end, why);
  // R7: a round is charged once, for what ended it; what no restart heals costs none.
  const bool is_hang = message.end.is_hang();
  RestartBudget& budget = is_hang ? hang_restart_budget_ : restart_budget_;
  const bool is_charged =
      restart_budget_.has_charged(round_) || hang_restart_budget_.has_charged(round_);
  if (message.is_fatal || (!is_charged && !budget.charge(round_))) {
    if (!failing_) {
      is_workers_fault_ = true;
      failing_ = what + restarts_used(is_hang);
    }
  }
  request_stop(StopCause::Failure, what, effects);
}

void Job::on_done(Node& node, RoundNumber round, Effects& effects) {
  if (round != round_ || !is_member(node.id.incarnation)) return;
  node.worker_phase = Node::WorkerPhase::Done;
  done_.insert(node.id.incarnation);
  if (phase_ == Phase::Stopping) {
    send(node, stop_of_round(StopCause::NodeLost, "the round is over"), effects);
    return;
  }
  if (phase_ == Phase::Running && done_.size() == assignments_.size()) {  // R8
    job_result_ = control::JobResult{true, ""};
    finish_job(effects);
  }
}

void Job::on_stopped(Node& node, const control::Stopped& message, Effects& effects) {
  bool is_part = is_member(node.id.incarnation);
  if (is_part && message.round != round_) return;  // said twice of an older round
  node.worker_phase = Node::WorkerPhase::Stopped;
  node.facts.reserved_port = message.reserved_port;
  take_snapshots(node, message.snapshots);
  if (!is_part) return;
  has_saved_ = has_saved_ && message.has_saved;
  const bool is_of_now = phase_ == Phase::Running || phase_ == Phase::Stopping || is_recovering();
  if (message.failure && is_of_now && !is_drained_)
    add_failure_candidate(node, *message.failure, "");
  if (phase_ == Phase::Stopping) pending_.erase(node.id.incarnation);
  if (phase_ == Phase::Running || is_recovering()) {  // nobody asked: its worker lease had ended
    request_stop(StopCause::NodeLost, node.id.name + " stopped its workers on its own", effects);
  }
}

// What makes no sense counts as nothing: it would reach other nodes.
void Job::take_snapshots(Node& node, const std::vector<control::SnapshotName>& snapshots) {
  node.facts.snapshots.clear();
  if (are_sane(snapshots)) node.facts.snapshots = snapshots;
}

void Job::on_ack(Node& node, Effects& effects) {
  if (phase_ == Phase::Finishing) pending_.erase(node.id.incarnation);
  if (phase_ == Phase::Ended) send(node, control::Bye{}, effects);
}

}  // namespace cpprun
