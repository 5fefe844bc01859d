// Election: who leads a job whose arbiter is etcd (docs/protocol.md, R18). What one agent asks of
// etcd, what it makes of the answers, and until when its coordinator may issue worker leases. It
// knows nothing of HTTP, addresses of etcd or retries elsewhere: rendezvous/client/etcd carries
// requests out, the simulator on a model.
//
// A core: no I/O, no clock, no randomness. One per agent process; everything on one thread.
//
//   look --key is gone--> grant a lease --> campaign --won--> lead --leave()--> revoke, end
//    ^ \--somebody leads--> Follow                 |lost        |lease gone, guard broken, silence
//    +---------------------------------------------+------------+ Lost
//
// The key is gone only when no worker of its coordinator's rounds can live any more: it was revoked
// by leave(), which asks for that, or its lease has ended, and all worker leases ended before (I1).
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

// ---------------------------------------------------------------- what is asked of etcd

// LeaseGrant of so many seconds, ID 0. Answered by Granted.
struct Grant {
  int64_t ttl_s = 0;
};
// Txn: if create_revision(leader_key) == 0 then put leader_key = value under `lease`, get
// leader_key, get job_state_key; else get leader_key, get job_state_key. Answered by Seen.
struct Campaign {
  std::string leader_key, value, job_state_key;
  int64_t lease = 0;
};
// LeaseKeepAlive, once. Answered by Kept.
struct KeepAlive {
  int64_t lease = 0;
};
// Txn: if create_revision(leader_key) == create_revision and mod_revision(job_state_key) ==
// mod_revision (0: there is none) then put job_state_key = value; else get leader_key, get
// job_state_key. The second guard keeps a request that lingered somewhere from undoing a later one.
// Answered by Seen.
struct Write {
  std::string leader_key, job_state_key, value;
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
};
// Txn without a guard: get leader_key, get job_state_key; linearizable. Answered by Seen.
struct Read {
  std::string leader_key, job_state_key;
};
// LeaseRevoke. Answered by Revoked.
struct Revoke {
  int64_t lease = 0;
};

using Request = std::variant<Grant, Campaign, KeepAlive, Write, Read, Revoke>;
struct SendRequest {
  uint64_t id = 0;  // grows; each is answered once, by on_response() with this id
  Request what;
  Duration most{};  // then Failed is the answer, and whatever comes later is dropped
};

// ---------------------------------------------------------------- what etcd answers

struct Granted {
  int64_t lease = 0;
  int64_t ttl_s = 0;  // etcd may give more than was asked for
};
struct KeepAliveResult {
  int64_t ttl_s = 0;  // 0: there is no such lease any more
};
struct KeyValue {
  std::string value;
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
  int64_t lease = 0;
};
// Of a Txn. `leader` and `facts` as far as it got them; nothing: no such key.
struct ReadResult {
  bool is_done = false;  // the guard held (Read: true)
  int64_t revision = 0;  // header.revision: of this Txn's own puts, if it made any
  std::optional<KeyValue> leader{}, facts{};
};
struct Revoked {};
// etcd says no: nothing was done (no such lease, no permission, too large ...).
struct Refused {
  std::string why;
};
// No answer came, or none that makes sense: it may have been done, or be done later.
struct Failed {
  std::string why;
};
using Response = std::variant<Granted, KeepAliveResult, ReadResult, Revoked, Refused, Failed>;

// ---------------------------------------------------------------- what was decided

// Lead the job: CoordinatorOptions::leader lease. `facts`: what it goes on from; nothing: it is
// new.
struct Elected {
  Term term;  // greater than any before
  std::optional<control::PersistedJobState> facts;
  Instant until;  // no grant of ours goes beyond
};
// Leading goes on until then: Coordinator::lead_until().
struct ExtendLease {
  Instant until;
};
// What was given to write() stands in etcd, and we are in charge: what had to wait for it may go
// out.
struct Persisted {};
// Stop leading at once, and tell nobody: reset all connections. Nothing that waited goes out.
struct LeadershipLost {
  std::string why;
};
// Somebody else leads: Agent::on_led_from().
struct FollowLeader {
  control::Leader leader;
  Term term;
};
// After leave(): nothing follows.
struct Resigned {};
// A line for people; the same may come again and again while it lasts.
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
    control::Leader self;  // where our coordinator would be reached
    Duration lease{};      // L, as in the job's terms
  };

  explicit Election(Options options);

  // Once, before everything else.
  void start(Instant now, election::Effects& effects);
  void on_response(Instant now, uint64_t id, const election::Response& response,
                   election::Effects& effects);
  // Whether our agent has a coordinator that issues worker leases (Agent::is_led()). Said when it
  // may have changed, and at least each heartbeat: who is led asks etcd nothing.
  void set_has_leader(Instant now, bool is_led, election::Effects& effects);
  // Whether our agent would lead: not one that is leaving. At first it would.
  void set_candidate(bool is_willing) { is_candidate_ = is_willing; }
  // Facts that must stand before what follows from them goes out; Written or Lost follows.
  // Requires: leading, and the one before was Written.
  void write(Instant now, const control::PersistedJobState& facts, election::Effects& effects);
  // Our process goes. `is_idle`: no worker of the job can live (Coordinator::is_idle()), so that
  // somebody else may lead at once; otherwise the lease has to end. Left follows soon.
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
  void say(const std::string& trouble, election::Effects& effects) const;
  Instant until() const;
  Duration response_timeout() const;

  const Options options_;
  State state_ = State::BackingOff;
  bool has_leader_ = false;
  bool is_candidate_ = true;
  uint64_t last_request_ = 0;     // the newest id
  uint64_t awaited_request_ = 0;  // of the request that state_ waits for; 0: none
  Instant sent_at_;               // of that
  Instant poll_at_ = Instant::never();
  std::optional<Lease> lease_;     // the one we campaign with, and lead under
  int64_t followed_revision_ = 0;  // creation revision of the key that was told by Follow

  // Leading.
  int64_t create_revision_ = 0;           // of our key: the guard
  int64_t job_state_revision_ = 0;        // of the facts as we know them
  std::map<uint64_t, Instant> renewals_;  // under way, with the send time; few: each is answered
  Instant renew_at_ = Instant::never();
  std::optional<std::string> writing_;  // given to write(), not released yet
  bool is_written_ = false;             // it stands in etcd
  uint64_t write_id_ = 0;
  Instant write_at_ = Instant::never();
};

}  // namespace cpprun
