#include "rendezvous/coordinator/node_table.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/endpoint.hpp"

namespace cpprun {
namespace {

Node::WorkerPhase worker_phase_of(control::ReportedPhase reported_phase) {
  switch (reported_phase) {
    case control::ReportedPhase::Idle: return Node::WorkerPhase::Idle;
    case control::ReportedPhase::Running: return Node::WorkerPhase::Running;
    case control::ReportedPhase::Stopped: return Node::WorkerPhase::Stopped;
    case control::ReportedPhase::Done: return Node::WorkerPhase::Done;
  }
  return Node::WorkerPhase::Idle;
}

bool is_on_our_machine(const SessionAddresses& connection) {
  return is_loopback(connection.peer_address) ||
         connection.peer_address == connection.local_address;
}

}  // namespace

Node& NodeTable::add(Instant now, SessionId session, const control::Hello& hello,
                     const control::Register& message, const SessionAddresses& addresses,
                     Effects& effects) {
  auto [it, is_new] = nodes_.try_emplace(hello.node.incarnation);
  Node& node = it->second;
  if (is_new) {
    node.arrival = ++arrivals_;
    node.came_at = now;
  }
  if (node.session) {  // the newer connection counts (R4)
    sessions_.erase(*node.session);
    effects.emplace_back(Close{*node.session, true});
  }
  node.id = hello.node;
  node.key = hello.token;
  node.connection = hello.connection;
  node.session = session;
  node.session_addresses = addresses;
  node.liveness = Node::Liveness::Present;
  node.heard_at = now;
  node.unanswered.reset();
  node.facts = message;
  node.worker_phase = worker_phase_of(message.reported_phase);
  sessions_[session] = hello.node.incarnation;
  return node;
}

void NodeTable::disconnect(Node& node) {
  if (node.session) sessions_.erase(*node.session);
  node.session.reset();
}

void NodeTable::erase(Incarnation incarnation) {
  disconnect(nodes_.at(incarnation));
  nodes_.erase(incarnation);
  ready_.erase(incarnation);
}

void NodeTable::clear() {
  nodes_.clear();
  sessions_.clear();
  ready_.clear();
}

void NodeTable::disconnect_all(Effects& effects) {
  for (const auto& [session, node] : sessions_) effects.emplace_back(Close{session, false});
  clear();
}

void NodeTable::disconnect_without(const std::string& job_key, Effects& effects) {
  std::vector<Incarnation> others;
  for (const auto& [incarnation, node] : nodes_) {
    if (!node.facts.assignment || node.facts.assignment->job_key != job_key) {
      others.push_back(incarnation);
    }
  }
  for (Incarnation other : others) {
    if (const auto& session = nodes_.at(other).session) {
      effects.emplace_back(Close{*session, false});
    }
    erase(other);
  }
}

void NodeTable::redirect_all(const control::Redirect& to, Effects& effects) {
  for (const auto& [incarnation, node] : nodes_) send(node, to, effects);
  clear();
}

void NodeTable::update_ready(const Node& node) {
  if (node.is_ready()) {
    ready_.insert(node.id.incarnation);
  } else {
    ready_.erase(node.id.incarnation);
  }
}

Node* NodeTable::find(SessionId session) {
  auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : &nodes_.at(it->second);
}

Node* NodeTable::find(Incarnation incarnation) {
  auto it = nodes_.find(incarnation);
  return it == nodes_.end() ? nullptr : &it->second;
}

const Node* NodeTable::find(Incarnation incarnation) const {
  auto it = nodes_.find(incarnation);
  return it == nodes_.end() ? nullptr : &it->second;
}

int64_t NodeTable::usable_count(const HostLedger& hosts) const {
  return std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const Node& node = entry.second;
    return node.liveness == Node::Liveness::Present && !node.is_draining() &&
           !node.has_failed_check() && node.link_failure.empty() &&
           !hosts.is_excluded(node.id.name);
  });
}

bool NodeTable::has_candidate() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    const Node& node = entry.second;
    return !node.is_embedded && node.liveness == Node::Liveness::Present && !node.is_draining();
  });
}

bool NodeTable::is_from_member(const SessionAddresses& connection) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const Node& node = entry.second;
    if (!node.group_rank) return false;
    const std::vector<std::string>& known = node.facts.interface_addresses;
    return node.session_addresses.peer_address == connection.peer_address ||
           (is_on_our_machine(node.session_addresses) && is_on_our_machine(connection)) ||
           (!is_loopback(connection.peer_address) &&
            std::find(known.begin(), known.end(), connection.peer_address) != known.end());
  });
}

std::optional<control::SnapshotName> NodeTable::newest_snapshot() const {
  std::optional<control::SnapshotName> newest;
  for (const auto& [incarnation, node] : nodes_) {
    for (const control::SnapshotName& snapshot : node.facts.snapshots) {
      if (!newest || newest->step < snapshot.step) newest = snapshot;
    }
  }
  return newest;
}

JobProgress NodeTable::progress() const {
  JobProgress made;
  for (const auto& [incarnation, node] : nodes_) made.step = std::max(made.step, node.last_step);
  if (const auto newest = newest_snapshot()) made.snapshot = newest->step;
  return made;
}

void send(const Node& node, control::CoordinatorMessage message, Effects& effects) {
  if (node.is_connected()) effects.emplace_back(Send{*node.session, std::move(message)});
}

}  // namespace cpprun
