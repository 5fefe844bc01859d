#include "rendezvous/core/membership.hpp"

#include <algorithm>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "common/verdict.hpp"

namespace cpprun {

using control::Standing;
using control::StopCause;

namespace {

Error refuse(const std::string& why) {
  return Error{ErrorKind::Refused, why};
}

std::string range_of(const control::Terms& terms) {
  std::string min = std::to_string(terms.min_nodes);
  if (terms.min_nodes == terms.max_nodes) return min;
  return min + ":" + std::to_string(terms.max_nodes);
}

Node::Work to_work(Standing standing) {
  switch (standing) {
    case Standing::Idle:
      return Node::Work::Idle;
    case Standing::Running:
      return Node::Work::Running;
    case Standing::Stopped:
      return Node::Work::Stopped;
    case Standing::Done:
      return Node::Work::Done;
  }
  return Node::Work::Idle;
}

}  // namespace

Membership::Membership(MembershipOptions options, const control::Terms& terms, Effects& effects)
    : options_(std::move(options)),
      terms_(terms),
      epoch_(options_.epoch),
      budget_(terms.max_restarts),
      hang_budget_(terms.max_restarts),
      needs_proof_(options_.needs_proof) {
  if (options_.is_heir) {
    phase_ = Phase::Recovering;
    recovery_.emplace(Recovery{});
  }
  if (options_.mandate) {
    until_ = options_.mandate->until;
    if (options_.mandate->facts) go_on_from(*options_.mandate->facts);
  }
  if (!terms_.is_store_on_main_port) effects.push_back(WantStorePort{options_.run_id});
}

// ---------------------------------------------------------------- joining

Status Membership::admit(const Node* known, const control::Hello& hello,
                         const control::Register& message) const {
  if (message.nproc < 1 || message.nproc > limits::kWorkersPerNode) {
    return refuse("an agent must bring 1 to " + std::to_string(limits::kWorkersPerNode) +
                  " workers; this one brings " + std::to_string(message.nproc));
  }
  if (message.terms.min_nodes != terms_.min_nodes || message.terms.max_nodes != terms_.max_nodes) {
    return refuse("this agent was started with --nnodes=" + range_of(message.terms) +
                  ", the job '" + options_.run_id + "' runs with --nnodes=" + range_of(terms_) +
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
  if (!terms_.has_fixed_ranks) return {};
  int64_t rank = message.node_rank.value_or(0);
  if (rank < 0 || rank >= terms_.max_nodes) {
    return refuse("--node-rank=" + std::to_string(rank) +
                  " is not below --nnodes=" + std::to_string(terms_.max_nodes));
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

void Membership::on_register(Instant now, SessionId session, const control::Hello& hello,
                             const control::Register& message, const SessionFacts& facts,
                             Effects& effects) {
  auto it = nodes_.find(hello.node.incarnation);
  if (Status ok = admit(it == nodes_.end() ? nullptr : &it->second, hello, message); !ok) {
    effects.push_back(Note{Note::Level::Warning, "refused",
                           "refused the agent on " + hello.node.name + " (" + facts.peer_address +
                               "): " + ok.error().text});
    effects.push_back(Send{session, control::Refused{ok.error().text}});
    effects.emplace_back(Close{session, false});
    return;
  }
  recall(now, message);
  Node& node = take_in(now, session, hello, message, facts, effects);
  if (is_recovering()) {
    take_in_memory(now, node, effects);
  } else {
    place(now, node, effects);
  }
  if (auto still = nodes_.find(hello.node.incarnation); still != nodes_.end()) {
    update_ready(still->second);
    if (departure_) send(still->second, *departure_, effects);
  }
  settle(now, effects);
}

Node& Membership::take_in(Instant now, SessionId session, const control::Hello& hello,
                          const control::Register& message, const SessionFacts& facts,
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
  node.session_facts = facts;
  node.life = Node::Life::Present;
  node.heard_at = now;
  node.unanswered.reset();
  node.is_embedded = options_.embedded == hello.node.incarnation;
  node.facts = message;
  if (node.is_embedded && node.is_draining()) is_host_drained_ = true;
  strikes_.learn(message.strikes);
  if (!is_recovering()) node.facts.world.reset();
  if (terms_.has_fixed_ranks) node.facts.node_rank = message.node_rank.value_or(0);
  node.work = to_work(message.standing);
  if (has_missed_world(node)) {  // it was stopped when the round formed (R2), whatever else it says
    node.work = phase_ == Phase::Running ? Node::Work::Starting : Node::Work::Stopped;
  }
  sessions_[session] = hello.node.incarnation;
  if (!is_free(node)) next_lease_end_ = std::min(next_lease_end_, now + terms_.lease);
  if (!is_recovering()) welcome(node, effects);
  return node;
}

void Membership::welcome(const Node& node, Effects& effects) const {
  control::Welcome welcome;
  welcome.epoch = epoch_;
  welcome.coordinator = options_.coordinator;
  welcome.version = CPPRUN_VERSION;
  welcome.is_heir = heir_ && heir_->node == node.id.incarnation;
  if (!is_free(node)) {
    welcome.heartbeat = heartbeat();
    welcome.lease = terms_.lease;
  }
  send(node, welcome, effects);
}

// Decides what a node that has just registered is told, by the phase of the job and by where it
// stands.
void Membership::place(Instant now, Node& node, Effects& effects) {
  if (phase_ == Phase::Deciding || phase_ == Phase::Ended) {
    send(node, decision_, effects);
    pending_.insert(node.id.incarnation);
    return;
  }
  if (is_member(node.id.incarnation)) {
    resume(node, effects);
    return;
  }
  if (node.work == Node::Work::Running || node.work == Node::Work::Done) {
    stop_left_over(node, effects);
    return;
  }
  update_ready(node);
  if (phase_ == Phase::Running) grow_if_due(now, effects);
  if (phase_ == Phase::Gathering) try_form(now, effects);
  if (!is_member(node.id.incarnation) && !is_unwanted(node)) say_wait(node, false, effects);
}

// A member that registers again and has not seen the world of its round.
bool Membership::has_missed_world(const Node& node) const {
  return is_member(node.id.incarnation) && node.facts.round < round_;
}

// A member of the current round is back (R1).
void Membership::resume(Node& node, Effects& effects) {
  if (has_missed_world(node)) {
    pending_.erase(node.id.incarnation);  // a stop of that round would mean nothing to it
    if (phase_ == Phase::Running) {
      send(node, worlds_.at(node.id.incarnation), effects);
    } else {
      say_wait(node, false, effects);  // else it would not know the heir (R14)
    }
    return;
  }
  if (phase_ == Phase::Gathering) {  // the round is over; it waits for the next
    if (!node.has_workers() && node.work != Node::Work::Done) return;
    send(node, stop_of_round(StopCause::NodeLost, "the round is over"), effects);
    return;
  }
  if (node.work == Node::Work::Running) {
    if (node.is_draining()) return request_drain(node, effects);
    if (phase_ != Phase::Stopping) return;
    send(node, stop_of_round(StopCause::NodeLost, "the round is over"), effects);
    return;
  }
  if (node.work == Node::Work::Done) {
    on_done(node, node.facts.round, effects);
    return;
  }
  // Its grant ended while it was cut off, or it never started: this round can't go on with it.
  pending_.erase(node.id.incarnation);
  request_stop(StopCause::NodeLost, node.id.name + " lost its workers while it was cut off",
               effects);
}

void Membership::say_wait(const Node& node, bool is_reminder, Effects& effects) const {
  bool is_spare = phase_ == Phase::Running;
  const bool has_heir = heir_node() != nullptr && heir_node() != &node;
  send(node, control::Wait{why_no_round(), is_spare, is_reminder, has_heir ? heir_ : std::nullopt},
       effects);
}

// ---------------------------------------------------------------- what members say

Node* Membership::find(SessionId session) {
  auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : &nodes_.at(it->second);
}

void Membership::on_message(Instant now, SessionId session, const control::AgentMessage& message,
                            Effects& effects) {
  Node* node = find(session);
  CPPRUN_CHECK(node != nullptr);
  node->heard_at = now;
  Incarnation incarnation = node->id.incarnation;
  if (const auto* ping = std::get_if<control::Ping>(&message)) {
    if (is_recovering()) {  // R13: nothing is granted before it is known which round is the newest
      node->unanswered = ping->seq;
    } else {
      send(*node, control::Pong{ping->seq, grant(now)}, effects);
    }
    turn_unwanted_away(effects);
    return;
  }
  if (const auto* told = std::get_if<control::Progress>(&message)) return node->take(*told);
  if (const auto* told = std::get_if<control::Lines>(&message)) return node->take(*told);
  if (const auto* strike = std::get_if<control::Strike>(&message)) {
    on_strike(*node, *strike, effects);
    return;
  }
  if (const auto* order = std::get_if<control::Order>(&message)) {
    answer_order(now, *node, *order, effects);
    return;
  }
  if (const auto* started = std::get_if<control::Started>(&message)) {
    if (started->round == round_ && node->work == Node::Work::Starting) {
      node->work = Node::Work::Running;
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
  settle(now, effects);
}

// The asker is answered in any case; the others hear of what strikes, and before it does: it may be
// the death of the very process that we live in, and who leads then must know of it.
void Membership::on_strike(const Node& asker, const control::Strike& message, Effects& effects) {
  const std::optional<int64_t> count = strikes_.claim(message.fault, message.times);
  control::Struck struck{message.fault, count.value_or(0), count.has_value()};
  struck.where = message.where;
  struck.step = message.step;
  struck.training_epoch = message.training_epoch;
  for (const auto& [incarnation, node] : nodes_) {
    if (struck.is_given && incarnation != asker.id.incarnation) send(node, struck, effects);
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
bool Membership::is_damage_news(const control::Failed& message) const {
  return resume_ && is_resume_fetched_ && resume_->id == message.damaged_snapshot;
}

void Membership::on_failed(Node& node, const control::Failed& message, Effects& effects) {
  bool is_current = message.round == round_ && is_member(node.id.incarnation) &&
                    (phase_ == Phase::Running || phase_ == Phase::Stopping || is_recovering());
  if (!is_current) return;
  const std::string why = why_none_ran(node, message);
  const std::string what = describe(Culprit{node.id.name, message.end, why});
  if (is_damage_news(message)) {  // costs no restart: the next round begins with another
    damaged_.insert(message.damaged_snapshot);
    if (phase_ == Phase::Running) {
      effects.push_back(Note{Note::Level::Warning, "damaged_snapshot", what});
    }
    request_stop(StopCause::Snapshot, what, effects);
    return;
  }
  if (is_drained_ && !message.is_fatal) return;  // it follows from the stop that was asked for
  suspect(node, message.end, why);
  // R7: a round is charged once, for what ended it; what no restart heals costs none.
  const bool is_hang = message.end.is_hang();
  Budget& budget = is_hang ? hang_budget_ : budget_;
  const bool is_charged = budget_.has_charged(round_) || hang_budget_.has_charged(round_);
  if (message.is_fatal || (!is_charged && !budget.charge(round_))) {
    if (!failing_) {
      is_workers_fault_ = true;
      failing_ = what + restarts_used(is_hang);
    }
  }
  request_stop(StopCause::Failure, what, effects);
}

void Membership::on_done(Node& node, RoundNumber round, Effects& effects) {
  if (round != round_ || !is_member(node.id.incarnation)) return;
  node.work = Node::Work::Done;
  done_.insert(node.id.incarnation);
  if (phase_ == Phase::Stopping) {
    send(node, stop_of_round(StopCause::NodeLost, "the round is over"), effects);
    return;
  }
  if (phase_ == Phase::Running && done_.size() == worlds_.size()) {  // R8
    decision_ = control::Decided{true, ""};
    decide(effects);
  }
}

void Membership::on_stopped(Node& node, const control::Stopped& message, Effects& effects) {
  bool is_part = is_member(node.id.incarnation);
  if (is_part && message.round != round_) return;  // said twice of an older round
  node.work = Node::Work::Stopped;
  node.facts.reserved_port = message.reserved_port;
  take_snapshots(node, message.snapshots);
  if (!is_part) return;
  has_saved_ = has_saved_ && message.has_saved;
  const bool is_of_now = phase_ == Phase::Running || phase_ == Phase::Stopping || is_recovering();
  if (message.failure && is_of_now && !is_drained_) suspect(node, *message.failure, "");
  if (phase_ == Phase::Stopping) pending_.erase(node.id.incarnation);
  if (phase_ == Phase::Running || is_recovering()) {  // nobody asked: its grant had ended
    request_stop(StopCause::NodeLost, node.id.name + " stopped its workers on its own", effects);
  }
}

// What makes no sense counts as nothing: it would reach other nodes.
void Membership::take_snapshots(Node& node, const std::vector<control::SnapshotName>& snapshots) {
  node.facts.snapshots.clear();
  if (are_sane(snapshots)) node.facts.snapshots = snapshots;
}

void Membership::on_ack(Node& node, Effects& effects) {
  if (phase_ == Phase::Deciding) pending_.erase(node.id.incarnation);
  if (phase_ == Phase::Ended) send(node, control::Bye{}, effects);
}

}  // namespace cpprun
