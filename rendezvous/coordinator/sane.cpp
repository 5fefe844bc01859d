#include "rendezvous/coordinator/sane.hpp"

#include <algorithm>

#include "common/limits/faults.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "rendezvous/coordinator/snapshot_choice.hpp"

namespace cpprun {

bool is_port(int64_t number) {
  return number >= 0 && number <= 65535;
}
bool is_short(const std::string& name) {
  return name.size() <= limits::kNameBytes;
}

bool is_sane(const control::Hello& hello) {
  const bool is_plain = !text::has_control(hello.version) && !text::has_control(hello.run_id) &&
                        !text::has_control(hello.node.name);
  return is_plain && hello.version.size() <= limits::kVersionBytes;
}

namespace {

bool is_sane(const control::JobSpec& job_spec) {
  return job_spec.min_nodes >= 1 && job_spec.max_nodes >= job_spec.min_nodes &&
         job_spec.max_nodes <= limits::kNodesPerJob && job_spec.max_restarts >= 0 &&
         job_spec.startup_failures >= 0 && job_spec.lease >= limits::kNodeLeaseMin &&
         job_spec.heartbeat > Duration{} && job_spec.scale_up_interval >= Duration{} &&
         is_port(job_spec.master_port) && is_short(job_spec.master_addr);
}

constexpr int64_t kNumberMax = INT64_MAX / 2;

bool are_counts_sane(const control::RankAssignment& assignment, const control::JobSpec& job_spec) {
  const int64_t wanted = assignment.wanted_nodes.value_or(job_spec.min_nodes);
  return assignment.restart_count >= 0 && assignment.restart_count <= job_spec.max_restarts &&
         assignment.hang_restarts >= 0 && assignment.hang_restarts <= job_spec.max_restarts &&
         assignment.admin_restarts >= 0 && assignment.admin_restarts <= kNumberMax &&
         wanted >= job_spec.min_nodes && wanted <= job_spec.max_nodes;
}

bool is_sane(const std::optional<control::PeerAddress>& peer) {
  return !peer || (is_port(peer->port) && is_short(peer->address));
}

bool is_sane(const control::RankAssignment& assignment, const control::Register& message) {
  return assignment.round == message.round && assignment.round > RoundNumber() &&
         assignment.term >= Term() && assignment.term <= message.term &&
         assignment.group_size >= 1 && assignment.group_size <= message.job_spec.max_nodes &&
         assignment.group_rank >= 0 && assignment.group_rank < assignment.group_size &&
         assignment.base_rank >= 0 && are_counts_sane(assignment, message.job_spec) &&
         is_short(assignment.master_addr) && is_short(assignment.snapshot_secret) &&
         assignment.host_rank < assignment.group_size &&
         (!assignment.standby ||
          (is_short(assignment.standby->address) && is_port(assignment.standby->port))) &&
         is_sane(assignment.replicas_of) && is_sane(assignment.replicas_at) &&
         (!assignment.resume || are_sane({assignment.resume->snapshot}));
}

}  // namespace

bool is_sane(const control::Register& message) {
  const std::vector<std::string>& all = message.addresses;
  return is_sane(message.job_spec) && message.round >= RoundNumber() && message.term >= Term() &&
         message.round <= RoundNumber(kNumberMax) && message.term <= Term(kNumberMax) &&
         is_port(message.reserved_port) && is_port(message.snapshot_port) &&
         is_port(message.control_port) && message.fault_counts.size() <= limits::kFaultsPerPlan &&
         are_sane(message.snapshots) &&
         (!message.assignment || is_sane(*message.assignment, message)) &&
         is_short(message.clock_domain) && is_short(message.role) && is_short(message.local_addr) &&
         all.size() <= limits::kAddressesPerNode && std::all_of(all.begin(), all.end(), is_short);
}

}  // namespace cpprun
