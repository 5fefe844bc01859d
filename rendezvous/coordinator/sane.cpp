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

bool is_sane(const control::Terms& terms) {
  return terms.min_nodes >= 1 && terms.max_nodes >= terms.min_nodes &&
         terms.max_nodes <= limits::kNodesPerJob && terms.max_restarts >= 0 &&
         terms.startup_failures >= 0 && terms.lease >= limits::kLeaseMin &&
         terms.heartbeat > Duration{} && terms.scale_up_interval >= Duration{} &&
         is_port(terms.master_port) && is_short(terms.master_addr);
}

constexpr int64_t kNumberMax = INT64_MAX / 2;

bool are_counts_sane(const control::World& world, const control::Terms& terms) {
  const int64_t wanted = world.wanted_nodes.value_or(terms.min_nodes);
  return world.restart_count >= 0 && world.restart_count <= terms.max_restarts &&
         world.hang_restarts >= 0 && world.hang_restarts <= terms.max_restarts &&
         world.operator_restarts >= 0 && world.operator_restarts <= kNumberMax &&
         wanted >= terms.min_nodes && wanted <= terms.max_nodes;
}

bool is_sane(const std::optional<control::Peer>& peer) {
  return !peer || (is_port(peer->port) && is_short(peer->address));
}

bool is_sane(const control::World& world, const control::Register& message) {
  return world.round == message.round && world.round > RoundNumber() && world.epoch >= Epoch() &&
         world.epoch <= message.epoch && world.group_size >= 1 &&
         world.group_size <= message.terms.max_nodes && world.group_rank >= 0 &&
         world.group_rank < world.group_size && world.base_rank >= 0 &&
         are_counts_sane(world, message.terms) && is_short(world.master_addr) &&
         is_short(world.snapshot_secret) && world.host_rank < world.group_size &&
         (!world.heir || (is_short(world.heir->address) && is_port(world.heir->port))) &&
         is_sane(world.copies_of) && is_sane(world.copies_at) &&
         (!world.resume || are_sane({world.resume->snapshot}));
}

}  // namespace

bool is_sane(const control::Register& message) {
  const std::vector<std::string>& all = message.addresses;
  return is_sane(message.terms) && message.round >= RoundNumber() && message.epoch >= Epoch() &&
         message.round <= RoundNumber(kNumberMax) && message.epoch <= Epoch(kNumberMax) &&
         is_port(message.reserved_port) && is_port(message.snapshot_port) &&
         is_port(message.control_port) && message.strikes.size() <= limits::kFaultsPerPlan &&
         are_sane(message.snapshots) && (!message.world || is_sane(*message.world, message)) &&
         is_short(message.clock_id) && is_short(message.role) && is_short(message.local_addr) &&
         all.size() <= limits::kAddressesPerNode && std::all_of(all.begin(), all.end(), is_short);
}

}  // namespace cpprun
