// Network: what can go wrong, and being mended.
#include <algorithm>

#include "tests/support/sim/network.hpp"

namespace cpprun::sim {

void Network::set_power(HostId host, bool is_on) {
  if (is_on) {
    without_power_.erase(host);
    release_held();
    return;
  }
  without_power_.insert(host);
  for (Running& running : programs_) {
    if (running.host != host || running.program == nullptr) continue;
    running.program = nullptr;
    for (ConnectionId id : running.connections) {
      for (End& end : connections_.at(id).ends) {
        if (end.program < 0 || host_of(end.program) != host) continue;
        end.state = State::Closed;
        end.is_forgotten = true;
        end.unread.clear();
      }
    }
    running.connections.clear();
  }
  std::erase_if(listeners_, [&](const auto& entry) { return entry.first.first == host; });
}

void Network::mend(HostId from, HostId to) {
  cuts_.erase({from, to});
  release_held();
}

void Network::mend_host(HostId host) {
  cut_off_.erase(host);
  release_held();
}

void Network::mend_all() {
  cuts_.clear();
  cut_off_.clear();
  without_power_.clear();
  clogs_.clear();
  release_held();
}

// TCP tries again after a while, and what waited comes in order.
void Network::release_held() {
  std::set<std::pair<ConnectionId, int>> held = std::exchange(held_, {});
  for (const auto& [id, to_side] : held) {
    auto it = connections_.find(id);
    if (it == connections_.end()) continue;
    const End& to = it->second.ends[to_side];
    if (!passes(host_of(it->second.ends[1 - to_side].program), host_of(to.program))) {
      held_.emplace(id, to_side);
      continue;
    }
    pump_at(agenda_.now() + dice_.up_to(options_.retransmit_max), id, to_side);
  }
}

void Network::clog(HostId from, HostId to, Instant until) {
  Instant& clogged = clogs_[{from, to}];
  clogged = std::max(clogged, until);
}

void Network::break_connection(ConnectionId connection) {
  auto it = connections_.find(connection);
  if (it == connections_.end() || it->second.ends[0].state != State::Open) return;
  const HostId here = host_of(it->second.ends[0].program);
  const HostId there = host_of(it->second.ends[1].program);
  if (!passes(here, there) || !passes(there, here)) return;  // nobody would hear of it
  it->second.is_broken = true;
  for (int side : {0, 1}) {
    End& end = it->second.ends[side];
    for (const Parcel& lost : end.on_the_way) end.waiting -= lost.bytes.size();
    end.on_the_way.clear();
  }
  for (int side : {0, 1}) {
    if (it->second.ends[side].state == State::Open) answer_with_reset(connection, 1 - side);
  }
}

void Network::black_hole(ConnectionId connection) {
  auto it = connections_.find(connection);
  if (it == connections_.end()) return;
  const Connection& found = it->second;
  const ProgramId peer = found.ends[1].program;
  if (peer >= 0 && host_of(found.ends[0].program) == host_of(peer)) return;  // no wire between
  it->second.is_black_hole = true;
}

}  // namespace cpprun::sim
