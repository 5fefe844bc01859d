#include "rendezvous/core/membership.hpp"

#include <algorithm>

#include "common/limits.hpp"
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
    : options_(std::move(options)), terms_(terms), budget_(terms.max_restarts) {
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
  Node& node = take_in(now, session, hello, message, facts, effects);
  place(now, node, effects);
  if (auto still = nodes_.find(hello.node.incarnation); still != nodes_.end()) {
    update_ready(still->second);
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
    arrived_at_ = now;
  }
  if (node.session) {  // the newer connection counts (R4)
    sessions_.erase(*node.session);
    effects.emplace_back(Close{*node.session, true});
  }
  node.id = hello.node;
  node.connection = hello.connection;
  node.session = session;
  node.session_facts = facts;
  node.life = Node::Life::Present;
  node.heard_at = now;
  node.is_embedded = options_.embedded == hello.node.incarnation;
  node.facts = message;
  if (terms_.has_fixed_ranks) node.facts.node_rank = message.node_rank.value_or(0);
  node.work = to_work(message.standing);
  if (has_missed_world(node)) {  // it was stopped when the round formed (R2), whatever else it says
    node.work = phase_ == Phase::Running ? Node::Work::Starting : Node::Work::Stopped;
  }
  sessions_[session] = hello.node.incarnation;
  if (!node.is_embedded) next_lease_end_ = std::min(next_lease_end_, now + terms_.lease);
  control::Welcome welcome{options_.epoch, options_.coordinator, CPPRUN_VERSION, Duration{},
                           Duration{}};
  if (!node.is_embedded) {
    welcome.heartbeat = heartbeat();
    welcome.lease = terms_.lease;
  }
  send(node, welcome, effects);
  return node;
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
    // Workers of a round that this coordinator does not know, or that went on without the node.
    send(node,
         control::Stop{node.facts.round, StopCause::NodeLost, "the job went on without this node"},
         effects);
    return;
  }
  update_ready(node);
  if (phase_ == Phase::Running) grow_if_due(now, effects);
  if (phase_ == Phase::Gathering) try_form(now, effects);
  if (!is_member(node.id.incarnation)) say_wait(node, false, effects);
}

// A member that registers again and has not seen the world of its round.
bool Membership::has_missed_world(const Node& node) const {
  return is_member(node.id.incarnation) && node.facts.round < round_;
}

// A member of the current round is back (R1).
void Membership::resume(Node& node, Effects& effects) {
  if (has_missed_world(node)) {
    pending_.erase(node.id.incarnation);  // a stop of that round would mean nothing to it
    if (phase_ == Phase::Running) send(node, worlds_.at(node.id.incarnation), effects);
    return;
  }
  if (phase_ == Phase::Gathering) {  // the round is over; it waits for the next
    if (!node.has_workers() && node.work != Node::Work::Done) return;
    send(node, control::Stop{round_, StopCause::NodeLost, "the round is over"}, effects);
    return;
  }
  if (node.work == Node::Work::Running) {
    if (phase_ != Phase::Stopping) return;
    send(node, control::Stop{round_, StopCause::NodeLost, "the round is over"}, effects);
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
  send(node, control::Wait{why_no_round(), is_spare, is_reminder}, effects);
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
    send(*node, control::Pong{ping->seq, grant()}, effects);
    return;
  }
  if (const auto* started = std::get_if<control::Started>(&message)) {
    if (started->round == round_ && node->work == Node::Work::Starting) {
      node->work = Node::Work::Running;
    }
  } else if (const auto* failed = std::get_if<control::Failed>(&message)) {
    on_failed(*node, *failed, effects);
  } else if (const auto* done = std::get_if<control::Done>(&message)) {
    on_done(*node, done->round, effects);
  } else if (const auto* stopped = std::get_if<control::Stopped>(&message)) {
    on_stopped(*node, *stopped, effects);
  } else if (const auto* leave = std::get_if<control::Leave>(&message)) {
    node_is_gone(incarnation, StopCause::NodeLeft, node->id.name + " left (" + leave->why + ")",
                 effects);
  } else if (std::holds_alternative<control::Ack>(message)) {
    on_ack(*node, effects);
  }
  if (auto it = nodes_.find(incarnation); it != nodes_.end()) update_ready(it->second);
  settle(now, effects);
}

void Membership::on_failed(Node& node, const control::Failed& message, Effects& effects) {
  bool is_current = message.round == round_ && is_member(node.id.incarnation) &&
                    (phase_ == Phase::Running || phase_ == Phase::Stopping);
  if (!is_current) return;
  std::string what = "rank " + std::to_string(message.end.rank.value) + " (pid " +
                     std::to_string(message.end.pid) + ", on " + node.id.name + ") " +
                     describe_end(message.end);
  if (message.is_fatal) what = "a worker could not be started on " + node.id.name;
  if (message.is_fatal || !budget_.charge(round_)) {  // R7; what no restart heals costs none
    if (!failing_) {
      failing_ = what + "; restarts used: " + std::to_string(budget_.used()) + " of " +
                 std::to_string(budget_.max());
    }
  }
  request_stop(StopCause::Failure, what, effects);
}

void Membership::on_done(Node& node, RoundNumber round, Effects& effects) {
  if (round != round_ || !is_member(node.id.incarnation)) return;
  node.work = Node::Work::Done;
  done_.insert(node.id.incarnation);
  if (phase_ == Phase::Stopping) {
    send(node, control::Stop{round_, StopCause::Failure, "the round is over"}, effects);
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
  if (!is_part) return;
  if (phase_ == Phase::Stopping) pending_.erase(node.id.incarnation);
  if (phase_ == Phase::Running) {  // nobody asked: its grant had ended
    request_stop(StopCause::NodeLost, node.id.name + " stopped its workers on its own", effects);
  }
}

void Membership::on_ack(Node& node, Effects& effects) {
  if (phase_ == Phase::Deciding) pending_.erase(node.id.incarnation);
  if (phase_ == Phase::Ended) send(node, control::Bye{}, effects);
}

// ---------------------------------------------------------------- losses

void Membership::on_closed(Instant now, SessionId session, Ending how, Effects& effects) {
  Node* node = find(session);
  if (node == nullptr) return;  // an older connection: changes nothing (R4)
  sessions_.erase(session);
  node->session.reset();
  Incarnation incarnation = node->id.incarnation;
  bool has_part = phase_ != Phase::Ended && (node->has_workers() || node->work == Node::Work::Done);
  if (how == Ending::Reset && phase_ != Phase::Ended) {
    // No evidence, only the start of a silence: it may connect again, else its lease ends (R4, R5).
    update_ready(*node);
  } else if (has_part) {
    node->life = Node::Life::Dead;  // R4; its workers are gone after the grace
    node->dead_at = now;
    next_burial_ = std::min(next_burial_, now + limits::kDeathGrace);
    update_ready(*node);
    if (phase_ == Phase::Running && !done_.contains(incarnation)) {
      request_stop(StopCause::NodeLost, "the agent on " + node->id.name + " died", effects);
    }
  } else {
    node_is_gone(incarnation, StopCause::NodeLost, "the agent on " + node->id.name + " went away",
                 effects);
  }
  settle(now, effects);
}

// Its workers are certainly gone. `why` is told to the others if the round can't go on without it.
void Membership::node_is_gone(Incarnation incarnation, StopCause cause, const std::string& why,
                              Effects& effects) {
  auto it = nodes_.find(incarnation);
  CPPRUN_CHECK(it != nodes_.end());
  if (it->second.session) sessions_.erase(*it->second.session);
  nodes_.erase(it);
  ready_.erase(incarnation);
  pending_.erase(incarnation);
  bool ends_round = is_member(incarnation) && !done_.contains(incarnation);  // R3, R8
  if (phase_ == Phase::Running && ends_round) request_stop(cause, why, effects);
}

void Membership::bury_the_dead(Instant now, Effects& effects) {
  std::vector<Incarnation> gone;
  next_burial_ = Instant::never();
  for (const auto& [incarnation, node] : nodes_) {
    if (node.life != Node::Life::Dead) continue;
    Instant burial = node.dead_at + limits::kDeathGrace;
    if (burial <= now) {
      gone.push_back(incarnation);
    } else {
      next_burial_ = std::min(next_burial_, burial);
    }
  }
  for (Incarnation incarnation : gone) {
    node_is_gone(incarnation, StopCause::NodeLost, "an agent died", effects);
  }
}

void Membership::end_leases(Instant now, Effects& effects) {
  std::vector<Incarnation> lost;
  next_lease_end_ = Instant::never();
  for (const auto& [incarnation, node] : nodes_) {
    if (node.is_embedded || node.life != Node::Life::Present) continue;
    Instant end = node.heard_at + terms_.lease;
    if (end <= now) {
      lost.push_back(incarnation);
    } else {
      next_lease_end_ = std::min(next_lease_end_, end);
    }
  }
  for (Incarnation incarnation : lost) {  // R5
    const Node& node = nodes_.at(incarnation);
    std::string why = "nothing was heard from " + node.id.name + " for " +
                      std::to_string(static_cast<int64_t>(to_seconds(terms_.lease))) + " s";
    effects.push_back(Note{Note::Level::Warning, "node_lost", why});
    if (node.session) effects.emplace_back(Close{*node.session, true});
    node_is_gone(incarnation, StopCause::NodeLost, why, effects);
  }
}

// ---------------------------------------------------------------- time

// F (R6): 0.8 of the lease, lowered where inequality I1 demands it: KILL is done on the node before
// the lease ends here, however the two clocks drift.
Duration Membership::grant() const {
  constexpr int kDrift = limits::kClockDriftPercent;
  Duration most = (terms_.lease / 100 * (100 - kDrift) - limits::kKillTakes) / (100 + kDrift) * 100;
  return std::min(terms_.lease / 5 * 4, most - std::chrono::milliseconds(1));
}

// A ping and its answer must fit twice into the time before a granted worker gets TERM.
Duration Membership::heartbeat() const {
  constexpr Duration kNotice = std::chrono::seconds(1);
  Duration safe = grant() < 2 * kNotice ? grant() / 2 : grant() - kNotice;
  return std::min(terms_.heartbeat, safe / 2);
}

void Membership::on_time(Instant now, Effects& effects) {
  if (now >= next_burial_) bury_the_dead(now, effects);
  if (now >= next_lease_end_) end_leases(now, effects);
  if (now >= growth_deadline()) grow_if_due(now, effects);
  if (now >= say_waiting_at_) say_waiting(now, effects);
  settle(now, effects);
}

Instant Membership::next_deadline() const {
  return std::min(
      {next_burial_, next_lease_end_, last_call_deadline(), growth_deadline(), say_waiting_at_});
}

}  // namespace cpprun
