// Etcd: a model of etcd v3 with the guarantees that R18 relies on: one linearizable store, leases
// that end no sooner than their time to live by etcd's own drifting clock. Between it and a host
// the network may fail: no route in either direction, requests that are executed long after the
// client gave up, lost answers.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "rendezvous/coordinator/election.hpp"
#include "tests/support/sim/election_checks.hpp"
#include "tests/support/sim/event_queue.hpp"
#include "tests/support/sim/host_clock.hpp"
#include "tests/support/sim/network.hpp"
#include "tests/support/sim/prng.hpp"
#include "tests/support/sim/trace.hpp"

namespace cpprun::sim {

inline constexpr HostId kEtcdHost = 900'000;

struct EtcdOptions {
  int64_t ttl_least_s = 1;   // the shortest lease that etcd grants
  double loses_answers = 0;  // probability of each
  double lingers = 0;        // probability that a request is executed late
  Duration lingers_max = std::chrono::seconds(6);
};

class Etcd {
 public:
  Etcd(EventQueue& event_queue, Network& network, Trace& trace, Checks& checks, Prng prng,
       HostClock clock, EtcdOptions options)
      : event_queue_(event_queue),
        network_(network),
        trace_(trace),
        prng_(prng),
        clock_(clock),
        options_(options),
        watch_(checks) {}

  using Reply = std::function<void(const election::Response&)>;
  // Calls `reply` once: with an answer, or with Failed after `most` of true time.
  void ask(HostId from, const election::SendRequest& ask, Reply reply);

  // `leader` considers itself leader by its key, and may issue worker leases until then, in true
  // time.
  void on_leader_lease(const std::string& leader_key, const control::Leader& leader, Instant until);
  ElectionChecks& watch() { return watch_; }

  // ---- faults
  void set_troubles(double loses_answers, double lingers) {
    options_.loses_answers = loses_answers;
    options_.lingers = lingers;
  }
  // All its members are down; when they return, every lease has its full time again.
  void stop();
  void start();

 private:
  struct Lease {
    int64_t ttl_s = 0;
    Instant ends;  // by its clock
    std::set<std::string> keys;
  };

  static constexpr Duration kLooksEach = std::chrono::milliseconds(500);  // for expired leases

  Instant local_now() const { return clock_.local(event_queue_.now()); }
  void trace(const std::string& what) const { trace_.line(event_queue_.now(), "etcd", what); }
  void arrive(HostId from, uint64_t number, const election::Request& request);
  void response(uint64_t number, const election::Response& response);
  election::Response apply(const election::Request& request);
  election::Response carry_out(const election::Grant& grant);
  election::Response carry_out(const election::Campaign& campaign);
  election::Response carry_out(const election::KeepAlive& keep);
  election::Response carry_out(const election::Write& write);
  election::Response carry_out(const election::Read& read);
  election::Response carry_out(const election::Revoke& revoke);
  election::ReadResult poll_leader(bool is_done, const std::string& leader,
                                   const std::string& facts) const;
  std::optional<election::KeyValue> get(const std::string& key) const;
  void put(const std::string& key, const std::string& value, int64_t lease);
  void look_later(int64_t lease);
  void end(int64_t lease, const std::string& why);

  EventQueue& event_queue_;
  Network& network_;
  Trace& trace_;
  Prng prng_;
  const HostClock clock_;
  EtcdOptions options_;
  bool is_up_ = true;
  int64_t revision_ = 1;
  int64_t leases_made_ = 0;
  std::map<std::string, election::KeyValue> keys_;
  std::map<int64_t, Lease> leases_;
  uint64_t last_request_ = 0;
  std::map<uint64_t, Reply> pending_;
  ElectionChecks watch_;
};

}  // namespace cpprun::sim
