// JobState: the state of a job that its next coordinator continues from. It travels in the rank
// assignments, of which each agent keeps the newest, and under a leader lease in the state that is
// persisted in etcd.
//
// A core: no I/O, no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "rendezvous/coordinator/admin_command_handler.hpp"
#include "rendezvous/coordinator/hosts/host_ledger.hpp"
#include "rendezvous/coordinator/node.hpp"
#include "rendezvous/coordinator/restart_budgets.hpp"
#include "rendezvous/coordinator/round_snapshots.hpp"
#include "rendezvous/coordinator/rounds/round.hpp"
#include "rendezvous/coordinator/standby_choice.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun {

struct JobState {
  JobState(const control::JobSpec& job_spec, bool has_leader_lease,
           std::function<std::string()> make_secret)
      : budgets(job_spec),
        hosts(job_spec.exclude_after),
        snapshots(make_secret),
        standby(job_spec, has_leader_lease),
        admin(job_spec),
        make_secret_(std::move(make_secret)) {}

  // Makes the rank assignments of a round that now forms, of these nodes in rank order. Requires:
  // at least one node.
  std::vector<control::RankAssignment> assign(const std::vector<Node*>& ranked,
                                              const control::JobSpec& job_spec, int64_t store_port,
                                              const NodeTable& nodes, bool is_led_by_standby);
  // The job continues from the round of this assignment.
  void restore(const control::RankAssignment& assignment);
  // Without the job's result.
  control::PersistedJobState to_persist() const;

  Term term;
  Term first_term;  // with which the job began; 1: not known
  Round round;      // the newest that was formed
  RestartBudgets budgets;
  HostLedger hosts;
  control::PastFailures past_failures;
  RoundSnapshots snapshots;
  StandbyChoice standby;
  AdminCommandHandler admin;
  bool needs_admin_token = false;  // admin commands need a MAC made with it
  std::string job_key;             // RankAssignment::job_key; empty until the first round

 private:
  std::function<std::string()> make_secret_;  // may be empty: no key
};

}  // namespace cpprun
