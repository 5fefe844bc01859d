#include "rendezvous/coordinator/registration_checks.hpp"

#include <algorithm>

#include "common/endpoint.hpp"
#include "common/limits/faults.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "rendezvous/coordinator/snapshot_choice.hpp"

namespace cpprun {

bool is_short(const std::string& name) { return name.size() <= limits::kNameBytes; }

bool is_sane(const control::Hello& hello) {
  const bool is_plain = !text::has_control(hello.version) && !text::has_control(hello.run_id) &&
                        !text::has_control(hello.node.name);
  return is_plain && hello.version.size() <= limits::kVersionBytes;
}

namespace {

bool is_sane(const control::JobSpec& job_spec) {
  return job_spec.min_nodes >= 1 && job_spec.max_nodes >= job_spec.min_nodes &&
         job_spec.max_nodes <= limits::kNodesPerJob && job_spec.expected_nodes >= 0 &&
         job_spec.expected_nodes <= limits::kNodesPerJob && job_spec.max_restarts >= 0 &&
         job_spec.startup_failures >= 0 && job_spec.exclude_after >= 0 &&
         job_spec.link_check_bytes >= 0 &&
         job_spec.link_check_bytes <= limits::kLinkCheckMiBMax << 20 &&
         job_spec.restart_backoff >= Duration{} &&
         job_spec.restart_backoff <= limits::kRestartBackoffMax &&
         job_spec.lease >= limits::kNodeLeaseMin && job_spec.heartbeat > Duration{} &&
         job_spec.scale_up_interval >= Duration{} && is_port(job_spec.master_port) &&
         is_short(job_spec.master_addr);
}

constexpr int64_t kNumberMax = INT64_MAX / 2;

// Negative limits of hangs and losses: JobSpec.
bool are_counts_sane(const control::RankAssignment& assignment, const control::JobSpec& job_spec) {
  const int64_t wanted = assignment.wanted_nodes.value_or(job_spec.min_nodes);
  const int64_t hangs = job_spec.max_hangs < 0 ? job_spec.max_restarts : job_spec.max_hangs;
  const int64_t losses = job_spec.max_node_losses < 0 ? kNumberMax : job_spec.max_node_losses;
  return assignment.restart_count >= 0 && assignment.restart_count <= job_spec.max_restarts &&
         assignment.hang_restarts >= 0 && assignment.hang_restarts <= hangs &&
         class_budgets(assignment).node_losses >= 0 &&
         class_budgets(assignment).node_losses <= losses && assignment.admin_restarts >= 0 &&
         assignment.admin_restarts <= kNumberMax && wanted >= job_spec.min_nodes &&
         wanted <= job_spec.max_nodes;
}

bool are_addresses(const std::vector<std::string>& all) {
  return all.size() <= limits::kAddressesPerNode && std::all_of(all.begin(), all.end(), is_short);
}

bool is_sane(const std::optional<control::PeerAddress>& peer) {
  return !peer || (is_port(peer->port) && is_short(peer->address));
}

bool is_sane(const control::RankAssignment& assignment, const control::Register& message) {
  return assignment.round == message.round && assignment.round > RoundNumber() &&
         assignment.term >= Term() && assignment.term <= message.term &&
         assignment.group_size >= 1 && assignment.group_size <= message.job_spec.max_nodes &&
         assignment.group_rank >= 0 && assignment.group_rank < assignment.group_size &&
         assignment.base_rank >= 0 && assignment.base_rank <= kNumberMax &&
         are_counts_sane(assignment, message.job_spec) && is_short(assignment.master_addr) &&
         is_short(assignment.snapshot_secret) && is_short(assignment.job_key) &&
         assignment.host_rank < assignment.group_size &&
         (!assignment.standby ||
          (is_short(assignment.standby->address) && is_port(assignment.standby->port))) &&
         is_sane(assignment.replicas_of) && is_sane(assignment.replicas_at) &&
         (!assignment.resume || are_sane({assignment.resume->snapshot}));
}

}  // namespace

bool is_sane(const control::Register& message) {
  return is_sane(message.job_spec) && message.round >= RoundNumber() && message.term >= Term() &&
         message.round <= RoundNumber(kNumberMax) && message.term <= Term(kNumberMax) &&
         is_port(message.reserved_port) && is_port(message.snapshot_port) &&
         is_port(message.control_port) && is_port(message.link_port) &&
         is_short(message.link_secret) && message.fault_counts.size() <= limits::kFaultsPerPlan &&
         are_sane(message.snapshots) &&
         (!message.assignment || is_sane(*message.assignment, message)) &&
         (!message.decided || message.assignment) &&  // only members report an outcome
         is_short(message.clock_domain) && is_short(message.role) && is_short(message.local_addr) &&
         are_addresses(message.addresses) && are_addresses(message.interface_addresses);
}

namespace {

Error refusal(const std::string& why) { return Error{ErrorKind::Refused, why}; }

std::string range_of(const control::JobSpec& job_spec) {
  std::string min = std::to_string(job_spec.min_nodes);
  if (job_spec.min_nodes == job_spec.max_nodes) return min;
  return min + ":" + std::to_string(job_spec.max_nodes);
}

const char* backend_of(const control::JobSpec& job_spec) {
  return job_spec.has_fixed_ranks ? "--rdzv-backend=static" : "--rdzv-backend=c10d";
}

}  // namespace

Status check_registration(const NodeTable& nodes, const control::Hello& hello,
                          const control::Register& message, const control::JobSpec& job_spec,
                          const std::string& run_id) {
  const Node* known = nodes.find(hello.node.incarnation);
  if (message.nproc < 1 || message.nproc > limits::kWorkersPerNode) {
    return refusal("an agent must bring 1 to " + std::to_string(limits::kWorkersPerNode) +
                   " workers; this one brings " + std::to_string(message.nproc));
  }
  if (message.job_spec.min_nodes != job_spec.min_nodes ||
      message.job_spec.max_nodes != job_spec.max_nodes) {
    return refusal("this agent was started with --nnodes=" + range_of(message.job_spec) +
                   ", the job '" + run_id + "' runs with --nnodes=" + range_of(job_spec) +
                   "; start all agents with the same value");
  }
  if (message.job_spec.has_fixed_ranks != job_spec.has_fixed_ranks) {
    return refusal(std::string("this agent was started with ") + backend_of(message.job_spec) +
                   ", the job '" + run_id + "' runs with " + backend_of(job_spec) +
                   "; start all agents with the same value");
  }
  if (known != nullptr && hello.token != known->key) {
    return refusal("another agent has its node id, and this one shows another key");
  }
  if (known != nullptr && hello.connection <= known->connection) {
    return refusal("an agent with the same identity is connected already");
  }
  if (known == nullptr && static_cast<int64_t>(nodes.all().size()) >= limits::kNodesPerJob) {
    return refusal("the job has " + std::to_string(limits::kNodesPerJob) +
                   " nodes, the most there can be");
  }
  if (!job_spec.has_fixed_ranks) return {};
  int64_t rank = message.node_rank.value_or(0);
  if (rank < 0 || rank >= job_spec.max_nodes) {
    return refusal("--node-rank=" + std::to_string(rank) +
                   " is not below --nnodes=" + std::to_string(job_spec.max_nodes));
  }
  for (const auto& [incarnation, node] : nodes) {
    // A disconnected node may be dead: its replacement waits for the end of its lease.
    if (&node != known && node.is_connected() && node.facts.node_rank == rank) {
      return refusal("--node-rank=" + std::to_string(rank) + " is taken by the agent on " +
                     node.id.name + "; give every agent its own");
    }
  }
  return {};
}

}  // namespace cpprun
