// AdminCommandHandler: carries out the commands of operators for one job, and remembers what
// holds for later rounds (docs/how-to/operators.md).
//
// A core: no I/O, no clock. The caller has checked that the operator may give the command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/result.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/hosts/host_ledger.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/coordinator/rounds/round.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class AdminCommandHandler {
 public:
  // The state of the job, as far as commands depend on it.
  struct JobView {
    const NodeTable& nodes;
    const Round& round;
    bool is_running = false;   // a round runs
    std::string why_no_round;  // why none does
    HostLedger& hosts;
    bool is_delayed = false;  // the next round waits for the end of its delay only
  };
  struct Outcome {
    std::string text;                           // for the operator
    std::optional<std::string> stop_because{};  // the round stops, and the next one forms
    control::StopCause stop_cause = control::StopCause::Operator;
    bool ends_delay = false;  // the next round forms without its delay
  };

  explicit AdminCommandHandler(const control::JobSpec& job_spec) : job_spec_(job_spec) {}

  // `by`: where the operator is, for people.
  Result<Outcome> carry_out(const control::AdminCommand& command, const std::string& by,
                            const JobView& job, Effects& effects);
  // The job continues from a round of another coordinator.
  void restore(const control::RankAssignment& assignment) {
    restarts_ = assignment.admin_restarts;
    wanted_nodes_ = assignment.wanted_nodes;
  }

  // All nodes were asked to leave, and nodes that register are asked too: no round follows.
  const std::optional<control::ShutdownRequest>& shutdown_request() const {
    return shutdown_request_;
  }
  // Restarts by command; they cost nothing.
  int64_t restarts() const { return restarts_; }
  // The number of nodes of the last scale command.
  std::optional<int64_t> wanted_nodes() const { return wanted_nodes_; }
  // A round has no more nodes than this.
  int64_t max_nodes() const { return wanted_nodes_.value_or(job_spec_.max_nodes); }

 private:
  Result<Outcome> restart(const std::string& by, const JobView& job);
  Result<Outcome> stop(bool saves, const std::string& by, const JobView& job, Effects& effects);
  Result<Outcome> drain(const std::string& name, const std::string& by, const JobView& job,
                        Effects& effects) const;
  Result<Outcome> exclude(const control::AdminCommand& command, const std::string& by,
                          const JobView& job) const;
  Result<Outcome> readmit(const std::string& name, const JobView& job) const;
  Result<Outcome> scale(int64_t nodes, const std::string& by, const JobView& job);

  const control::JobSpec job_spec_;
  int64_t restarts_ = 0;
  std::optional<int64_t> wanted_nodes_;
  std::optional<control::ShutdownRequest> shutdown_request_;
};

}  // namespace cpprun
