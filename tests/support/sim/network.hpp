// Network: hosts, and connections with TCP's semantics: bytes in order, or an end. Faults: latency,
// delay, congestion, cut and one-way routes, hosts without power, resets that drop unread data,
// half-open connections, connects that are refused or never answered, readers that do not read.
//
// It moves bytes; their meaning is up to the programs at both ends.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/time.hpp"
#include "tests/support/sim/event_queue.hpp"
#include "tests/support/sim/prng.hpp"
#include "tests/support/sim/trace.hpp"

namespace cpprun::sim {

using HostId = int;
using ProgramId = int;
using ConnectionId = uint64_t;
using Bytes = std::vector<uint8_t>;

inline std::string address_of(HostId host) { return "10.0.0." + std::to_string(host); }
inline constexpr int kJobPort = 29500;  // of the job's endpoint, on the coordinator's host

enum class Ending { Fin, Reset };

// A process, as the network sees it.
class Program {
 public:
  virtual ~Program() = default;
  // The result of a dial(); `why` has the form of an Attempt's text.
  virtual void on_dialled(ConnectionId connection, bool is_connected, const std::string& why) = 0;
  virtual void on_accepted(ConnectionId connection) = 0;
  virtual void on_bytes(ConnectionId connection, std::span<const uint8_t> bytes) = 0;
  virtual void on_ended(ConnectionId connection, Ending how) = 0;
};

struct NetworkOptions {
  Duration latency_max = std::chrono::milliseconds(2);  // of a pair of hosts, drawn once
  Duration delay_mean{};                                // in addition, drawn for each parcel
  Duration delay_max = std::chrono::milliseconds(500);
  Duration retransmit_max = std::chrono::milliseconds(800);  // after a cut is repaired
  double split = 0.05;       // probability that bytes sent together arrive in two pieces
  double lost_unread = 0.5;  // probability that a reset drops data that the peer has not read
};

class Network {
 public:
  Network(EventQueue& event_queue, Trace& trace, Prng prng, NetworkOptions options)
      : event_queue_(event_queue),
        trace_(trace),
        prng_(prng),
        pairs_(prng.child(1)),
        options_(options) {}

  // ---- programs
  ProgramId add(HostId host, Program& program);
  void listen(ProgramId program, int port) {
    listeners_[{programs_.at(at(program)).host, port}] = program;
  }
  // The kernel ends its connections: FIN, or RST where unread bytes remain.
  void end(ProgramId program, bool is_reset_forced = false);
  // A program that does not read (frozen, slow) gets the queued input when it reads again.
  void set_reading(ProgramId program, bool is_reading);
  // Delivers unread input, if the program reads.
  void deliver_unread(ProgramId program);

  // ---- connections
  ConnectionId dial(ProgramId from, HostId to, int port);
  void send(ProgramId from, ConnectionId connection, Bytes bytes);
  void close(ProgramId from, ConnectionId connection, Ending how);

  // ---- faults
  void set_power(HostId host, bool is_on);
  // Nothing passes from one host to the other; data in flight waits for the route.
  void cut(HostId from, HostId to) { cuts_.emplace(from, to); }
  void mend(HostId from, HostId to);
  void cut_off(HostId host) { cut_off_.insert(host); }
  void mend_host(HostId host);
  void mend_all();
  // Nothing arrives before `until`.
  void clog(HostId from, HostId to, Instant until);
  // Both sides get a reset, and data in flight is lost, as from a middlebox.
  void break_connection(ConnectionId connection);
  // Nothing passes any more, and neither end gets an event.
  void black_hole(ConnectionId connection);

  bool passes(HostId from, HostId to) const;
  Duration latency(HostId from, HostId to) const;
  HostId host_of(ProgramId program) const { return programs_.at(at(program)).host; }
  bool is_cut_off(HostId host) const { return cut_off_.contains(host); }
  // On any connection, one way, over the whole run.
  size_t most_waiting_bytes() const { return most_waiting_; }

 private:
  struct Packet {
    enum class Kind { Data, Fin, Reset } kind = Kind::Data;
    Bytes bytes;
    Instant at;
  };
  enum class State { Dialling, Open, Closed };
  // One end of a connection, and the direction towards it.
  struct End {
    ProgramId program = 0;
    State state = State::Dialling;
    bool is_forgotten = false;      // its host lost power: it will answer with a reset
    std::deque<Packet> on_the_way;  // to this end
    Instant newest;                 // arrival of the newest parcel, so that parcels stay in order
    std::deque<Packet> unread;
    bool is_accept_unread = false;
    size_t waiting = 0;  // bytes in flight or unread
  };
  struct Connection {
    End ends[2];  // 0: the connecting side; 1: the listening side
    // By a middlebox: data in flight is lost, and all later data is answered by a reset.
    bool is_broken = false;
    bool is_black_hole = false;
  };
  struct Running {
    HostId host = 0;
    Program* program = nullptr;  // null once the connection has ended
    bool is_reading = true;
    std::set<ConnectionId> connections;
  };

  static size_t at(ProgramId program) { return static_cast<size_t>(program); }
  End* end_of(ProgramId program, ConnectionId connection, int& side);
  void try_dial(ConnectionId id, HostId to, int port);
  void accept(ConnectionId id, ProgramId listener);
  void fail_dial(ConnectionId id, const std::string& why);
  void post(ConnectionId id, int to_side, Packet packet);
  void pump(ConnectionId id, int to_side);
  void pump_at(Instant when, ConnectionId id, int to_side);
  void arrive(ConnectionId id, int to_side, Packet packet);
  void redirect_members(ConnectionId id, int side, const Packet& packet);
  void answer_with_reset(ConnectionId id, int from_side);
  void shut(ConnectionId id, int side, Ending how);
  void forget_if_over(ConnectionId id);
  void release_held();

  EventQueue& event_queue_;
  Trace& trace_;
  Prng prng_;
  const Prng pairs_;
  const NetworkOptions options_;

  std::vector<Running> programs_;
  std::map<std::pair<HostId, int>, ProgramId> listeners_;
  std::map<ConnectionId, Connection> connections_;
  ConnectionId made_ = 0;

  std::set<HostId> without_power_;
  std::set<HostId> cut_off_;
  std::set<std::pair<HostId, HostId>> cuts_;
  std::map<std::pair<HostId, HostId>, Instant> clogs_;
  std::set<std::pair<ConnectionId, int>> held_;  // directions that wait for a route
  size_t most_waiting_ = 0;
};

}  // namespace cpprun::sim
