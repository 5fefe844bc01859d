#include "tests/support/sim/network.hpp"

#include <algorithm>

#include "common/check.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {
constexpr Duration kSynTries[] = {0s, 1s, 3s};
constexpr Duration kDialTakes = 5s;  // as rendezvous/client/connector.cpp
constexpr Duration kLoopback = 20us;
}  // namespace

// ---------------------------------------------------------------- programs

ProgramId Network::add(HostId host, Program& program) {
  programs_.push_back(Running{host, &program, true, {}});
  return static_cast<ProgramId>(programs_.size()) - 1;
}

void Network::end(ProgramId program, bool is_reset_forced) {
  Running& running = programs_[at(program)];
  running.program = nullptr;
  std::erase_if(listeners_, [&](const auto& entry) { return entry.second == program; });
  for (ConnectionId id : std::set<ConnectionId>(running.connections)) {
    int side = 0;
    End* own = end_of(program, id, side);
    if (own == nullptr) continue;
    bool is_reset = is_reset_forced || !own->unread.empty() || own->is_accept_unread;
    shut(id, side, is_reset ? Ending::Reset : Ending::Fin);
  }
}

void Network::set_reading(ProgramId program, bool is_reading) {
  programs_[at(program)].is_reading = is_reading;
}

void Network::deliver_unread(ProgramId program) {
  // A callback may end the program or any connection.
  for (ConnectionId id : std::set<ConnectionId>(programs_[at(program)].connections)) {
    for (;;) {
      const Running& running = programs_[at(program)];
      if (running.program == nullptr || !running.is_reading) return;
      int side = 0;
      End* own = end_of(program, id, side);
      if (own == nullptr) break;
      if (std::exchange(own->is_accept_unread, false)) {
        running.program->on_accepted(id);
        continue;
      }
      if (own->unread.empty()) break;
      Packet packet = std::move(own->unread.front());
      own->unread.pop_front();
      redirect_members(id, side, packet);
    }
  }
}

// Null unless the program still holds this end.
Network::End* Network::end_of(ProgramId program, ConnectionId connection, int& side) {
  auto it = connections_.find(connection);
  if (it == connections_.end()) return nullptr;
  for (side = 0; side < 2; ++side) {
    End& found = it->second.ends[side];
    if (found.program == program && found.state != State::Closed) return &found;
  }
  return nullptr;
}

// ---------------------------------------------------------------- connecting

ConnectionId Network::dial(ProgramId from, HostId to, int port) {
  ConnectionId id = ++made_;
  Connection& made = connections_[id];
  made.ends[0].program = from;
  made.ends[1].program = -1;
  programs_[at(from)].connections.insert(id);
  HostId here = host_of(from);
  for (Duration after : kSynTries) {
    event_queue_.in(after + latency(here, to), [this, id, to, port] { try_dial(id, to, port); });
  }
  event_queue_.in(kDialTakes, [this, id] { fail_dial(id, "no answer"); });
  return id;
}

void Network::try_dial(ConnectionId id, HostId to, int port) {
  auto it = connections_.find(id);
  if (it == connections_.end() || it->second.ends[0].state != State::Dialling) return;
  if (it->second.ends[1].state == State::Open) return;  // the answer is on its way
  HostId from = host_of(it->second.ends[0].program);
  if (!passes(from, to) || !passes(to, from)) return;
  auto listener = listeners_.find({to, port});
  if (listener == listeners_.end()) {
    event_queue_.in(latency(to, from), [this, id] { fail_dial(id, "Connection refused"); });
    return;
  }
  accept(id, listener->second);
  event_queue_.in(latency(to, from), [this, id] {
    auto made = connections_.find(id);
    if (made == connections_.end() || made->second.ends[0].state != State::Dialling) return;
    made->second.ends[0].state = State::Open;
    Program* dialler = programs_[at(made->second.ends[0].program)].program;
    if (dialler == nullptr) return;
    ProgramId program = made->second.ends[0].program;
    dialler->on_dialled(id, true, "");
    deliver_unread(program);
  });
}

void Network::accept(ConnectionId id, ProgramId listener) {
  End& end = connections_.at(id).ends[1];
  end.program = listener;
  end.state = State::Open;
  Running& running = programs_[at(listener)];
  running.connections.insert(id);
  trace_.fold(id);
  if (running.is_reading) {
    running.program->on_accepted(id);
  } else {
    end.is_accept_unread = true;  // the kernel has accepted it
  }
}

void Network::fail_dial(ConnectionId id, const std::string& why) {
  auto it = connections_.find(id);
  if (it == connections_.end() || it->second.ends[0].state != State::Dialling) return;
  ProgramId from = it->second.ends[0].program;
  it->second.ends[0].state = State::Closed;
  programs_[at(from)].connections.erase(id);
  if (it->second.ends[1].state == State::Open) answer_with_reset(id, 0);
  Program* dialler = programs_[at(from)].program;
  forget_if_over(id);
  if (dialler != nullptr) dialler->on_dialled(id, false, why);
}

// ---------------------------------------------------------------- sending

bool Network::passes(HostId from, HostId to) const {
  if (without_power_.contains(from) || without_power_.contains(to)) return false;
  if (from == to) return true;
  return !cut_off_.contains(from) && !cut_off_.contains(to) && !cuts_.contains({from, to});
}

Duration Network::latency(HostId from, HostId to) const {
  if (from == to) return kLoopback;
  auto [low, high] = std::minmax(from, to);
  uint64_t pair = static_cast<uint64_t>(low) << 32 | static_cast<uint32_t>(high);
  return 50us + pairs_.child(pair).up_to(options_.latency_max);
}

void Network::send(ProgramId from, ConnectionId connection, Bytes bytes) {
  int side = 0;
  End* own = end_of(from, connection, side);
  if (own == nullptr || own->state != State::Open) return;
  if (bytes.size() > 1 && prng_.chance(options_.split)) {
    auto middle = bytes.begin() + prng_.between(1, static_cast<int64_t>(bytes.size()) - 1);
    post(connection, 1 - side, Packet{Packet::Kind::Data, Bytes(bytes.begin(), middle), {}});
    bytes.erase(bytes.begin(), middle);
  }
  post(connection, 1 - side, Packet{Packet::Kind::Data, std::move(bytes), {}});
}

void Network::post(ConnectionId id, int to_side, Packet packet) {
  Connection& connection = connections_.at(id);
  End& to = connection.ends[to_side];
  HostId here = host_of(connection.ends[1 - to_side].program);
  HostId there = host_of(to.program);
  Instant when = event_queue_.now() + latency(here, there);
  if (here != there && options_.delay_mean > Duration{}) {
    when = when + std::min(prng_.until_event(options_.delay_mean), options_.delay_max);
  }
  if (auto clogged = clogs_.find({here, there}); clogged != clogs_.end()) {
    when = std::max(when, clogged->second);
  }
  packet.at = to.newest = std::max(to.newest, when);
  to.waiting += packet.bytes.size();
  most_waiting_ = std::max(most_waiting_, to.waiting);
  to.on_the_way.push_back(std::move(packet));
  pump_at(to.newest, id, to_side);
}

void Network::pump_at(Instant when, ConnectionId id, int to_side) {
  event_queue_.at(when, [this, id, to_side] { pump(id, to_side); });
}

// Delivers everything that is due, if possible.
void Network::pump(ConnectionId id, int to_side) {
  for (;;) {
    auto it = connections_.find(id);
    if (it == connections_.end()) return;
    End& to = it->second.ends[to_side];
    if (to.on_the_way.empty() || to.on_the_way.front().at > event_queue_.now()) return;
    HostId here = host_of(it->second.ends[1 - to_side].program);
    if (!passes(here, host_of(to.program)) && !it->second.is_black_hole) {
      const bool is_reset = to.on_the_way.front().kind == Packet::Kind::Reset;
      if (is_reset && !it->second.is_broken) {  // is not sent again
        to.on_the_way.pop_front();
        forget_if_over(id);
        continue;
      }
      held_.emplace(id, to_side);
      return;
    }
    Packet packet = std::move(to.on_the_way.front());
    to.on_the_way.pop_front();
    if (!it->second.is_black_hole) {
      arrive(id, to_side, std::move(packet));
    } else {
      to.waiting -= packet.bytes.size();
    }
  }
}

void Network::arrive(ConnectionId id, int to_side, Packet packet) {
  Connection& connection = connections_.at(id);
  End& to = connection.ends[to_side];
  trace_.fold(id * 8 + static_cast<uint64_t>(to_side) * 4 + static_cast<uint64_t>(packet.kind));
  trace_.fold(packet.bytes);
  // The reset of a broken connection may itself get lost; data lost before it is never resent.
  const bool is_lost = connection.is_broken && packet.kind == Packet::Kind::Data;
  if (to.state == State::Closed || to.is_forgotten || is_lost) {
    to.waiting -= packet.bytes.size();
    if (packet.kind == Packet::Kind::Data || to.is_forgotten) answer_with_reset(id, to_side);
    forget_if_over(id);
    return;
  }
  const Running& running = programs_[at(to.program)];
  const bool is_near = running.host == host_of(connection.ends[1 - to_side].program);
  if (packet.kind == Packet::Kind::Reset && !is_near && !to.unread.empty() &&
      prng_.chance(options_.lost_unread)) {
    for (const Packet& lost : to.unread) to.waiting -= lost.bytes.size();
    to.unread.clear();
  }
  if (!running.is_reading || to.is_accept_unread || to.state == State::Dialling) {
    to.unread.push_back(std::move(packet));
    return;
  }
  redirect_members(id, to_side, packet);
}

void Network::redirect_members(ConnectionId id, int side, const Packet& packet) {
  End& end = connections_.at(id).ends[side];
  end.waiting -= packet.bytes.size();
  Running& running = programs_[at(end.program)];
  Program* program = running.program;
  if (program == nullptr) return;
  if (packet.kind == Packet::Kind::Data) {
    program->on_bytes(id, packet.bytes);
    return;
  }
  bool is_reset = packet.kind == Packet::Kind::Reset;
  if (is_reset) {
    end.state = State::Closed;
    running.connections.erase(id);
    forget_if_over(id);
  }
  program->on_ended(id, is_reset ? Ending::Reset : Ending::Fin);
}

// A connection ended that the program no longer holds.
void Network::answer_with_reset(ConnectionId id, int from_side) {
  End& other = connections_.at(id).ends[1 - from_side];
  if (other.state == State::Closed || other.program < 0) return;
  if (!other.on_the_way.empty() && other.on_the_way.back().kind == Packet::Kind::Reset) return;
  post(id, 1 - from_side, Packet{Packet::Kind::Reset, {}, {}});
}

// ---------------------------------------------------------------- ending

void Network::close(ProgramId from, ConnectionId connection, Ending how) {
  int side = 0;
  End* own = end_of(from, connection, side);
  if (own == nullptr) return;
  bool has_unread = !own->unread.empty();
  shut(connection, side, has_unread ? Ending::Reset : how);
}

void Network::shut(ConnectionId id, int side, Ending how) {
  Connection& connection = connections_.at(id);
  End& own = connection.ends[side];
  bool was_dialling = own.state == State::Dialling;
  own.state = State::Closed;
  own.unread.clear();
  programs_[at(own.program)].connections.erase(id);
  End& peer = connection.ends[1 - side];
  if (was_dialling || peer.program < 0 || peer.state == State::Closed) {
    if (was_dialling && peer.state == State::Open) answer_with_reset(id, side);
    forget_if_over(id);
    return;
  }
  const bool is_near = host_of(own.program) == host_of(peer.program);
  if (how == Ending::Reset && !is_near) {  // data in flight may never arrive
    while (!peer.on_the_way.empty() && prng_.chance(0.5)) {
      peer.waiting -= peer.on_the_way.back().bytes.size();
      peer.on_the_way.pop_back();
    }
  }
  auto kind = how == Ending::Fin ? Packet::Kind::Fin : Packet::Kind::Reset;
  post(id, 1 - side, Packet{kind, {}, {}});
}

void Network::forget_if_over(ConnectionId id) {
  auto it = connections_.find(id);
  const End* ends = it->second.ends;
  bool is_over =
      ends[0].state == State::Closed && (ends[1].state == State::Closed || ends[1].program < 0);
  if (!is_over || !ends[0].on_the_way.empty() || !ends[1].on_the_way.empty()) return;
  connections_.erase(it);
}

// ---------------------------------------------------------------- faults

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

// TCP retransmits after a while, and queued data arrives in order.
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
    pump_at(event_queue_.now() + prng_.up_to(options_.retransmit_max), id, to_side);
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
  if (!passes(here, there) || !passes(there, here)) return;  // no end would notice it
  it->second.is_broken = true;
  for (int side : {0, 1}) {
    End& end = it->second.ends[side];
    for (const Packet& lost : end.on_the_way) end.waiting -= lost.bytes.size();
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
  if (peer >= 0 && host_of(found.ends[0].program) == host_of(peer))
    return;  // no network between a host and itself
  it->second.is_black_hole = true;
}

}  // namespace cpprun::sim
