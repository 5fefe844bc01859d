// Election: one agent's part in the election of a job's coordinator through etcd (docs/protocol.md,
// R18): its requests to etcd, its reaction to the responses, and how long its coordinator may issue
// worker leases. HTTP, addresses and retries are not its concern: rendezvous/client/etcd sends the
// requests, and the simulator answers them from a model.
//
// A core: no I/O, no clock, no randomness. One per agent process, on one thread.
//
//   poll --no key--> grant a lease --> campaign --won--> lead --leave()--> revoke, end
//    ^ \--another leads--> FollowLeader       |lost        |lease gone, guard broken, silence
//    +----------------------------------------+------------+ LeadershipLost
//
// When the key is gone, no worker of its coordinator's rounds can live: either leave() has revoked
// it, which requires that, or its lease has ended, and all worker leases ended before it (I1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun {

namespace election {

// ---------------------------------------------------------------- requests to etcd

// LeaseGrant of so many seconds, ID 0. Answered by Granted.
struct Grant {
  int64_t ttl_s = 0;
};
// Txn: if create_revision(leader_key) == 0 then put leader_key = value under `lease`, get
// leader_key, get job_state_key; else get leader_key, get job_state_key. Answered by ReadResult.
struct Campaign {
  std::string leader_key, value, job_state_key;
  int64_t lease = 0;
};
// LeaseKeepAlive, once. Answered by KeepAliveResult.
struct KeepAlive {
  int64_t lease = 0;
};
// Txn: if create_revision(leader_key) == create_revision and mod_revision(job_state_key) ==
// mod_revision (0: there is none) then put job_state_key = value; else get leader_key, get
// job_state_key. The second guard keeps a delayed request from undoing a later one.
// Answered by ReadResult.
struct Write {
  std::string leader_key, job_state_key, value;
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
};
// Txn without a guard: get leader_key, get job_state_key; linearizable. Answered by ReadResult.
struct Read {
  std::string leader_key, job_state_key;
};
// LeaseRevoke. Answered by Revoked.
struct Revoke {
  int64_t lease = 0;
};

using Request = std::variant<Grant, Campaign, KeepAlive, Write, Read, Revoke>;
struct SendRequest {
  uint64_t id = 0;  // grows; on_response() answers each request once
  Request what;
  Duration most{};  // after this time the response is Failed; a later one is dropped
};

// ---------------------------------------------------------------- responses of etcd

struct Granted {
  int64_t lease = 0;
  int64_t ttl_s = 0;  // etcd may give more than was asked for
};
struct KeepAliveResult {
  int64_t ttl_s = 0;  // 0: the lease does not exist any more
};
struct KeyValue {
  std::string value;
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
  int64_t lease = 0;
};
// Of a Txn. `leader` and `facts`: as far as the Txn read them; nothing: no such key.
struct ReadResult {
  bool is_done = false;  // the guard held (Read: true)
  int64_t revision = 0;  // header.revision: of this Txn's own puts, if it made any
  std::optional<KeyValue> leader{}, facts{};
};
struct Revoked {};
// etcd refuses, and has done nothing (no such lease, no permission, too large ...).
struct Refused {
  std::string why;
};
// No valid response: etcd may have carried out the request, or may do so later.
struct Failed {
  std::string why;
};
using Response = std::variant<Granted, KeepAliveResult, ReadResult, Revoked, Refused, Failed>;

// ---------------------------------------------------------------- effects

// Lead the job: CoordinatorOptions::leader_lease. `facts`: its persisted state; nothing: it is new.
struct Elected {
  Term term;  // greater than any before
  std::optional<control::PersistedJobState> facts;
  Instant until;  // no worker lease of this coordinator lasts longer
};
// The leader lease lasts until then: Coordinator::lead_until().
struct ExtendLease {
  Instant until;
};
// etcd has the state that write() was given, and this coordinator still leads: effects that waited
// for it may be carried out.
struct Persisted {};
// Stop leading at once: reset all connections and drop all effects that waited.
struct LeadershipLost {
  std::string why;
};
// Another node leads: Agent::on_led_from().
struct FollowLeader {
  control::Leader leader;
  Term term;
};
// The end of leave(): no effect follows.
struct Resigned {};
// A line for people. It is repeated as long as the trouble lasts.
struct Trouble {
  std::string text;
};

using Effect = std::variant<SendRequest, Elected, ExtendLease, Persisted, LeadershipLost,
                            FollowLeader, Resigned, Trouble>;
using Effects = std::vector<Effect>;

}  // namespace election

class Election {
 public:
  struct Options {
    std::string run_id;
    control::Leader self;  // where other nodes reach the coordinator of this process
    Duration lease{};      // the node lease L of the job's settings
  };

  explicit Election(Options options);

  // Requires: called once, before all others.
  void start(Instant now, election::Effects& effects);
  void on_response(Instant now, uint64_t id, const election::Response& response,
                   election::Effects& effects);
  // Whether the agent has a coordinator that issues worker leases (Agent::is_led()); such an agent
  // does not poll etcd. The caller calls it after every change, and at least with each heartbeat.
  void set_has_leader(Instant now, bool is_led, election::Effects& effects);
  // Whether the agent would lead the job: an agent that leaves would not. Initially: yes.
  void set_candidate(bool is_willing) { is_candidate_ = is_willing; }
  // Writes the job's state to etcd; Persisted or LeadershipLost follows. Requires: is_leading(),
  // and the write before was Persisted.
  void write(Instant now, const control::PersistedJobState& facts, election::Effects& effects);
  // This process exits. `is_idle`: no worker of the job can live (Coordinator::is_idle()), so
  // another node may lead at once; otherwise the lease has to end first. Resigned follows soon.
  void leave(Instant now, bool is_idle, election::Effects& effects);
  void on_time(Instant now, election::Effects& effects);
  Instant next_deadline() const;

  bool is_leading() const { return state_ == State::Leading; }

 private:
  enum class State { BackingOff, Polling, Granting, Campaigning, Leading, Leaving, Ended };
  struct Lease {
    int64_t id = 0;
    Instant renewed_at;  // send time of the newest request that etcd has confirmed
  };

  void ask(Instant now, State state, election::Request what, election::Effects& effects);
  uint64_t send(election::Request what, election::Effects& effects);
  void poll_leader(Instant now, election::Effects& effects);
  void back_off(Instant now, Duration pause);
  void on_read(Instant now, const election::ReadResult& seen, election::Effects& effects);
  void on_granted(Instant now, const election::Granted& granted, election::Effects& effects);
  void on_refused(Instant now, const std::string& why, election::Effects& effects);
  void campaign(Instant now, election::Effects& effects);
  void lead(Instant now, const election::ReadResult& seen, int64_t create_revision,
            election::Effects& effects);
  void follow(Instant now, const election::KeyValue& leader, election::Effects& effects);
  void renew_lease(Instant now, election::Effects& effects);
  void on_lease_renewed(Instant now, Instant sent_at, const election::Response& response,
                        election::Effects& effects);
  void send_write(election::Effects& effects);
  void on_write_response(Instant now, const election::Response& response,
                         election::Effects& effects);
  void release(Instant now, election::Effects& effects);
  void lose(Instant now, const std::string& why, election::Effects& effects);
  void report_trouble(const std::string& trouble, election::Effects& effects) const;
  Instant until() const;
  Duration response_timeout() const;

  const Options options_;
  State state_ = State::BackingOff;
  bool has_leader_ = false;
  bool is_candidate_ = true;
  uint64_t last_request_ = 0;     // the newest id
  uint64_t awaited_request_ = 0;  // the id of the request that state_ waits for; 0: none
  Instant sent_at_;               // of that request
  Instant poll_at_ = Instant::never();
  std::optional<Lease> lease_;     // of the campaign, and of the leadership
  int64_t followed_revision_ = 0;  // creation revision of the key of the last FollowLeader

  // Leading.
  int64_t create_revision_ = 0;     // of the own key: the guard
  int64_t job_state_revision_ = 0;  // of the last known job state
  std::map<uint64_t, Instant>
      renewals_;  // unanswered, with their send times; few: each is answered
  Instant renew_at_ = Instant::never();
  std::optional<std::string> writing_;  // from write(), until Persisted
  bool is_written_ = false;             // etcd has it
  uint64_t write_id_ = 0;
  Instant write_at_ = Instant::never();
};

}  // namespace cpprun
