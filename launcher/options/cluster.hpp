// --cluster: fills what flags and PET_* variables leave open from what Slurm or Kubernetes
// pass to the process. Pure: Environment is the only source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/parsed_options.hpp"

namespace cpprun {

struct ClusterView {
  ClusterConfig config;
  // Overrides what the endpoint's name implies about the hosting node; unset: the name decides.
  std::optional<bool> is_host;
  std::vector<uint16_t> further_ports;  // as in RendezvousConfig
  int expected_nodes = 0;               // as in RendezvousConfig
  // Another launcher on this node runs the job; this one ends at once with 0.
  bool is_surplus = false;
  std::string inferred;  // one line; empty: nothing was inferred
  std::vector<std::string> warnings;
};

// Writes what it infers into `options`, with the variable as the spelling, so that messages name
// it. Outside of a cluster, and with --standalone, it changes nothing.
Result<ClusterView> fill_from_cluster(ParsedOptions& options, const Environment& environment);

// Whether a run that ended with `exit_code` asks for a requeue. Only the first node asks,
// after 75 or after SIGTERM (also as --preempt-signal), up to the number that --requeue allows.
bool wants_requeue(const ClusterConfig& cluster, int exit_code);

// Whether `scontrol show job` shows that Slurm ends the job already: a user has cancelled it, or it
// is preempted without a grace time, and Slurm requeues it by itself. The processes get SIGTERM as
// at any other stop, and Slurm would requeue a cancelled job if asked. Pure.
bool is_ended_by_slurm(const std::string& shown_job);

// The value for ExcNodeList: what `scontrol show job` prints as its value (or "(null)"), and these
// hosts by their short names, as Slurm calls its nodes. Pure.
std::string exclusion_list(const std::string& shown_job, const std::vector<std::string>& hosts);

}  // namespace cpprun
