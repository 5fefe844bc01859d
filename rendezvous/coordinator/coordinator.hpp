// Coordinator: all jobs of one rendezvous server. It takes decoded messages, checks their senders,
// and routes them to jobs by run id.
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
#include <vector>

#include "common/ids.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/job.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

struct CoordinatorOptions {
  std::string host;  // the name of this host, for people
  Term term;         // greater than that of any former coordinator at this endpoint
  std::optional<Incarnation> embedded;  // the agent in this process
  Duration wait_reminder_interval = limits::kWaitReminderInterval;
  std::function<std::string()> make_secret{};  // as in JobOptions
  // The one job that the agent in this process leads as its standby (R16); agents of other jobs are
  // refused. Empty: any job.
  std::string standby_of{};
  // The job of the agent in this process. Only that agent may begin it: other agents of the job
  // that come earlier try again. Empty: the first agent of any job begins it.
  std::string own_job{};
  // Agents of other jobs than own_job are refused: their coordinator may be at another of the ports
  // that they try.
  bool leads_own_job_alone = false;
  // The one job for which this coordinator was elected (R18); agents of other jobs are refused.
  std::optional<LeaderLease> leader_lease{};
  // The id that belongs to a node's key (R10). None: ids are not checked, for tests only.
  std::function<Incarnation(const std::string& key)> node_id_of{};
  bool needs_admin_token = false;  // as in JobOptions
  std::string job_key{};           // of the job in `standby_of`, as in JobOptions
  // Whether the MAC of an announcement was made with this key of a job. None: announcements are not
  // checked, for tests only.
  std::function<bool(const std::string& job_key, const std::string& run_id,
                     const control::AnnounceLeader& message)>
      is_leader_of{};
  // An announcement is believed only if a node of the job is here to confirm it. False: also where
  // nothing is known of the job, so that an agent that was started anew finds it.
  bool needs_known_leader = false;
};

// A worker, by its global rank in the newest round of a job.
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
  Coordinator(const Coordinator&) = delete;  // its jobs refer to it

  void on_connected(SessionId session, SessionAddresses facts);
  void on_message(Instant now, SessionId session, control::AgentMessage received, Effects& effects);
  void on_closed(Instant now, SessionId session, Job::Ending how, Effects& effects);
  // The answer to WantStorePort; 0 if no port could be opened.
  void on_store_port(Instant now, const std::string& run_id, int64_t port, Effects& effects);
  // An admin command that does not come from an agent. The caller has checked that the operator may
  // give it, and delivers the reply before it carries out the effects. An empty run id: the only
  // job.
  control::AdminReply on_admin_command(Instant now, const std::string& run_id,
                                       const control::AdminCommand& command, const std::string& by,
                                       Effects& effects);
  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const;

  // Asks all agents that understand it to report the progress of their workers for this long; zero:
  // to stop reporting.
  void watch(Duration lasts, Effects& effects) const;

  // Asks the node of a rank, if it understands that, to send that worker's log lines for this long.
  void tail(const JobRank& wanted, Duration lasts, Effects& effects) const;

  const std::string& host() const { return options_.host; }
  size_t session_count() const { return sessions_.size(); }
  // The leader lease lasts until then. Requires: a leader lease.
  void lead_until(Instant until);
  // After the end of the leader lease another coordinator may lead: the runner then carries out no
  // effect before lead_until() extends the lease.
  bool is_in_charge(Instant now) const { return now < until_; }
  // The agent in this process has ended, with its workers. The coordinator keeps serving running
  // jobs and closes the connections of agents that would begin a new one: this process is about to
  // exit, and the next listener at this address serves them. `is_exiting`: a signal has asked this
  // process to exit, so it forms no further round.
  void on_host_agent_ended(Instant now, bool is_exiting, Effects& effects);
  // No worker of any job here lives.
  bool is_idle() const;
  // A job waits for this process to end, so that its standby can lead it, or can't be served here.
  bool may_exit() const;
  // The job of the agent on this connection; nullptr: not a registered agent.
  const Job* job_of(SessionId session) const;
  // The term that decided the ended job whose result the agent on this connection gets while the
  // next job with its run id is led here; nullopt: it gets none.
  std::optional<Term> ended_job_of(SessionId session) const;
  const std::map<std::string, std::unique_ptr<Job>>& jobs() const { return jobs_; }

 private:
  struct Session {
    SessionAddresses facts;
    std::optional<control::Hello> hello;
    bool is_registered = false;
    bool is_of_ended_job = false;  // it gets the result of that job, and takes part in no other
  };

  void refuse(SessionId session, const std::string& why, Effects& effects) const;
  void refuse_other_job(SessionId session, const std::string& only, Effects& effects) const;
  void on_hello(SessionId id, Session& session, const control::Hello& hello, Effects& effects);
  bool is_proven(const control::Hello& hello) const;
  void on_register(Instant now, SessionId id, Session& session, const control::Register& message,
                   Effects& effects);
  void on_announce_leader(SessionId id, const Session& session,
                          const control::AnnounceLeader& message, Effects& effects);
  bool is_believed(const std::string& run_id, const control::AnnounceLeader& message) const;
  bool redirect_if_led_elsewhere(SessionId id, const std::string& run_id, Effects& effects) const;
  std::string only_job() const;
  const control::PersistedJobState* ended_job() const;
  const control::JobResult* missed_result(const std::string& run_id,
                                          const control::Register& message) const;
  bool is_of_forgotten_job(const control::Register& message) const;
  std::optional<LeaderLease> leader_lease_for(const control::Register& first) const;
  Job* job_for(const std::string& run_id, const control::Register& message, SessionId session,
               Effects& effects);
  bool must_wait_for_next_job(const Job* job, SessionId session,
                              const control::Register& message) const;
  std::vector<std::string> waiting_jobs_but(const std::string& run_id) const;
  bool has_too_many_jobs() const;
  void forget_long_ended();
  void forget_if_over(const std::string& run_id, Effects& effects);

  const CoordinatorOptions options_;
  Instant until_;            // the end of the leader lease
  bool is_leaving_ = false;  // on_host_agent_ended
  int64_t jobs_begun_ = 0;   // each job gets a term of its own
  std::map<SessionId, Session> sessions_;
  // Jobs that are led from elsewhere, by run id. An entry lives as long as the connection that
  // reported it (R17).
  struct RemoteLeader {
    SessionId reported_by;
    control::Redirect where;
    bool is_believed = false;
  };
  std::map<std::string, RemoteLeader> remote_leaders_;
  // By run id. A job that has ended stays, without nodes, until its run id is used again.
  std::map<std::string, std::unique_ptr<Job>> jobs_;
};

}  // namespace cpprun
