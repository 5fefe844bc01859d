// Coordinator: all jobs of one rendezvous server. Takes decoded messages, checks who speaks, and
// routes them by run id.
//
// A core: no I/O, no clock. The server carries out the effects.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/ids.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/job.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

struct CoordinatorOptions {
  std::string host;  // our name, for people
  Term term;         // greater than that of any coordinator before us at this endpoint
  std::optional<Incarnation> embedded;  // the agent in our own process
  Duration wait_reminder_interval = limits::kWaitReminderInterval;
  std::function<std::string()> make_secret{};  // as in JobOptions
  // The one job that our own agent leads as its standby (R16); others are refused. Empty: any job.
  std::string standby_of{};
  // The job of the agent in our own process, which alone may begin it: until that has come, others
  // of it come too early. Empty: whoever comes first begins a job.
  std::string own_job{};
  // The one job that we were elected for (R18); others are refused.
  std::optional<LeaderLease> leader_lease{};
  // The id that belongs to a node's key (R10). None: ids are taken as they come; for tests of what
  // has nothing to do with them.
  std::function<Incarnation(const std::string& key)> node_id_of{};
  bool needs_proof = false;  // as in JobOptions
};

// A worker that somebody wants to know more of: its global rank in the newest round.
struct JobRank {
  std::string run_id;
  int64_t rank = 0;
  auto operator<=>(const JobRank&) const = default;
};

class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options)
      : options_(std::move(options)),
        until_(options_.leader_lease ? options_.leader_lease->until : Instant::never()) {}

  void on_connected(SessionId session, SessionAddresses facts);
  void on_message(Instant now, SessionId session, control::AgentMessage said, Effects& effects);
  void on_closed(Instant now, SessionId session, Job::Ending how, Effects& effects);
  // Answer to WantStorePort; 0 if no port could be opened.
  void on_store_port(Instant now, const std::string& run_id, int64_t port, Effects& effects);
  // An admin command from elsewhere than an agent; who gives it may. An empty run id means the only
  // job. The answer is to be delivered before the effects are carried out.
  control::AdminReply on_admin_command(Instant now, const std::string& run_id,
                                       const control::AdminCommand& order, const std::string& by,
                                       Effects& effects);
  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const;

  // Asks agents to tell how far their workers are, for so long; zero: no more. Who does not
  // understand that is not asked.
  void watch(Duration lasts, Effects& effects) const;

  // Asks the node of a rank to tell what that worker writes, for so long, if it can.
  void tail(const JobRank& wanted, Duration lasts, Effects& effects) const;

  const std::string& host() const { return options_.host; }
  size_t session_count() const { return sessions_.size(); }
  // Requires: a leader lease. It lasts until then.
  void lead_until(Instant until);
  // Past the deadline somebody else may lead: nothing may go out before lead_until() says more.
  bool is_in_charge(Instant now) const { return now < until_; }
  // The agent in this process has ended, with its workers. The coordinator stays for the nodes
  // whose job goes on. It turns newcomers of a new job away: they wait for the next listener at
  // this address, which may be the same node, and that cannot listen before this process has ended.
  void on_host_agent_ended(Instant now, Effects& effects);
  // No worker of our jobs lives.
  bool is_idle() const;
  // Who is left needs us to go: a standby leads the job then.
  bool is_left_to_standby() const;
  // The job whose agent speaks on this connection; null: no agent of a job does.
  const Job* job_of(SessionId session) const;
  const std::map<std::string, std::unique_ptr<Job>>& jobs() const { return jobs_; }

 private:
  struct Session {
    SessionAddresses facts;
    std::optional<control::Hello> hello;
    bool is_registered = false;
  };

  void refuse(SessionId session, const std::string& why, Effects& effects) const;
  void on_hello(SessionId id, Session& session, const control::Hello& hello, Effects& effects);
  bool is_proven(const control::Hello& hello) const;
  void on_register(Instant now, SessionId id, Session& session, const control::Register& message,
                   Effects& effects);
  void on_announce_leader(SessionId id, const Session& session,
                          const control::AnnounceLeader& message, Effects& effects);
  bool redirect_if_led_elsewhere(SessionId id, const std::string& run_id, Effects& effects) const;
  std::string only_job() const;
  std::optional<LeaderLease> leader_lease_for(const control::Register& first) const;
  Job* job_for(const std::string& run_id, const control::Register& message, SessionId session,
               Effects& effects);
  bool must_wait_for_next_job(const Job* job, SessionId session,
                              const control::Register& message) const;
  void forget_long_ended();
  void forget_if_over(const std::string& run_id, Effects& effects);

  const CoordinatorOptions options_;
  Instant until_;            // of the leader lease
  bool is_leaving_ = false;  // on_host_agent_ended
  int64_t jobs_begun_ = 0;   // each job's coordinator is an incarnation of its own
  std::map<SessionId, Session> sessions_;
  // Jobs that are led from elsewhere, by run id, as long as the connection that says so stands
  // (R17).
  struct RemoteLeader {
    SessionId reported_by;
    control::Redirect where;
  };
  std::map<std::string, RemoteLeader> remote_leaders_;
  // By run id. A job that was decided, or told to stop, stays, without nodes, until its name is
  // used again.
  std::map<std::string, std::unique_ptr<Job>> jobs_;
};

}  // namespace cpprun
