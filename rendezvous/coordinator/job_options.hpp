// JobOptions: what a coordinator knows of a job before its first agent registers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun {

// An elected coordinator leads one job with it (R18). The job that another coordinator has led goes
// on from `facts`; without them it is new.
struct LeaderLease {
  std::string run_id;
  std::optional<control::PersistedJobState> facts{};
  Instant until{};  // Coordinator::lead_until() extends it; no worker lease lasts longer
};

struct JobOptions {
  std::string run_id;
  std::string coordinator;  // the host name of this process, for people
  Term term;
  std::optional<Incarnation> embedded;  // the agent in this process
  // How often a waiting node is reminded of what it waits for.
  Duration wait_reminder_interval = limits::kWaitReminderInterval;
  // As in RoundSnapshots.
  std::function<std::string()> make_secret{};
  // This process has led jobs in the terms from here up to `term`; they are over.
  Term first_term;
  // The agent in this process is the standby that has seen its coordinator die (R16): the nodes in
  // that coordinator's process are dead, and this process leads the job.
  bool is_standby = false;
  // This coordinator was elected; another one may be when the leader lease ends (R18).
  std::optional<LeaderLease> leader_lease{};
  // Of a standby: the key of the job, from its rank assignment. Reports with another key are no
  // reports of this job.
  std::string job_key{};
  // There is an admin token. The caller of on_admin_command(), and of on_message() with an admin
  // command, has checked the proof of it.
  bool needs_admin_token = false;
  // Names of the other jobs of this coordinator that wait for nodes, for people. None: not known.
  std::function<std::vector<std::string>()> rivals{};
};

}  // namespace cpprun
