// RoundFormation: when the next round of a job forms, and when a running one restarts for a
// newcomer.
//
// A round needs enough ready nodes. It forms when it has a port for its store, the last call for
// further nodes is over, no delay of restarts runs, the links of its nodes are checked, and this
// coordinator is the one to lead it.
//
// A core: no I/O, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/hosts/link_checks.hpp"
#include "rendezvous/coordinator/job_state.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/coordinator/redirect_wait.hpp"
#include "rendezvous/coordinator/repeats/restart_backoff.hpp"
#include "rendezvous/coordinator/rounds/round.hpp"
#include "rendezvous/coordinator/rounds/round_schedule.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class RoundFormation {
 public:
  // The state of the job, as far as it decides when a round forms.
  struct JobView {
    JobPhase phase;
    const NodeTable& nodes;
    const JobState& state;
    bool is_leaving;  // this process ends, or another one leads the job from now on
  };

  // Asks for the port of the first round's store.
  RoundFormation(std::string run_id, const control::JobSpec& job_spec, Effects& effects);

  // A node registers for the first time.
  void on_arrival(Instant now) { schedule_.on_arrival(now); }
  // A node has registered that knows a standby.
  void await_redirect(Instant now) { redirect_wait_.begin(now, lease_); }
  void on_link_result(const Node& node, const control::LinkResult& result) {
    links_.take(node, result);
  }
  // The port that WantStorePort asked for; 0: none could be opened.
  void on_store_port(int64_t port);
  void on_time(Instant now);

  // Fewer nodes are ready than a round needs.
  void on_too_few_nodes() { schedule_.on_too_few_nodes(); }
  void cancel_link_checks() { links_.cancel(); }
  // Nodes whose links have failed are checked again now and then.
  void retry_link_checks(Instant now, NodeTable& nodes) { links_.retry_if_due(now, nodes); }
  // Enough nodes are ready. Whether their round forms now; if not, starts what is missing. Nodes
  // with bad links are no longer ready afterwards.
  bool is_due(Instant now, const JobView& job, const LinkChecks::JobView& links, Effects& effects);
  // The hosts that are excluded for their links since the last call.
  std::vector<std::string> take_excluded() { return links_.take_excluded(); }
  // The round forms. It uses store_port().
  void on_forming(Instant now) { backoff_.on_round_formed(now); }
  // It has formed. Asks for the port of the next one.
  void on_formed(size_t nodes, Effects& effects);
  // A round of `nodes` was formed by another coordinator.
  void on_restored(size_t nodes) { schedule_.on_round(nodes); }
  // A round is over: the next one needs new checks.
  void restart_link_checks(NodeTable& nodes) { links_.restart(nodes); }
  // As RestartBackoff::on_round_over().
  void on_round_over(Instant now, control::StopCause cause, const JobProgress& made,
                     control::PastFailures& past) {
    backoff_.on_round_over(now, cause, made, past);
  }

  // When a newcomer is taken in. Never once a node is done: its work would have to be done again.
  Instant growth_deadline(const JobView& job) const;
  void on_growth(Instant now) { schedule_.on_growth(now); }

  void end_delay() { backoff_.end(); }
  bool is_delayed() const { return backoff_.is_on(); }
  // By which the next round is delayed after the last one; zero: it is not.
  Duration delay() const { return backoff_.delay(); }
  // Its standby leads the job, or is about to (R17).
  bool awaits_redirect(const JobView& job) const;
  // Why no round forms although enough nodes are ready; "": for another reason. For people.
  std::string why_not(const JobView& job, bool has_enough_nodes) const;
  // Of the round that forms; 0: its store is on the main port.
  int64_t store_port() const { return store_port_.value_or(0); }
  Instant next_deadline(const JobView& job) const;

 private:
  bool has_store_port() const { return is_store_on_main_port_ || store_port_.has_value(); }
  bool is_held_back(const JobView& job) const;
  Instant last_call_deadline(const JobView& job) const;
  Instant link_deadline(const JobView& job) const;

  const std::string run_id_;
  const Duration lease_;
  const bool is_store_on_main_port_;
  RoundSchedule schedule_;
  RestartBackoff backoff_;
  LinkChecks links_;
  RedirectWait redirect_wait_;
  std::optional<int64_t> store_port_;  // open and unused
  bool is_port_refused_ = false;       // while a round ran, which needs none
};

}  // namespace cpprun
