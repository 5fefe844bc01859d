#include "agent/daemon/join_options.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "agent/process/proc_files.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/machine/identity.hpp"
#include "common/machine/own_addresses.hpp"
#include "common/proof/node_id.hpp"
#include "common/text.hpp"
#include "common/version.hpp"

namespace cpprun {
namespace {

// Identifies CLOCK_BOOTTIME: equal in processes that share the clock (same boot of the kernel, same
// time namespace), different in all others.
std::string own_clock_domain() {
  std::error_code error;
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/time", error).string();
  const std::string boot = read_small_file("/proc/sys/kernel/random/boot_id");
  return boot.empty() ? "" : std::string(text::strip(boot)) + " " + space;
}

}  // namespace

std::string node_name(const ClusterConfig& cluster) {
  const std::string host = own_host_name();
  return cluster.machine.empty() ? host : host + "@" + cluster.machine;
}

agent::AgentOptions join_options(const AgentConfig& config, const std::string& node_name,
                                 const std::string& key) {
  const RendezvousConfig& rendezvous = config.rendezvous;
  agent::AgentOptions options;
  options.hello = control::Hello{control::kProtocolVersion, version(),
                                 rendezvous.run_id,         NodeId{node_name, node_id_of(key)},
                                 first_connection_of(key),  key};
  control::JobSpec& job_spec = options.facts.job_spec;
  job_spec.min_nodes = rendezvous.min_nodes;
  job_spec.max_nodes = rendezvous.max_nodes;
  job_spec.max_restarts = config.max_restarts;
  job_spec.max_hangs = config.max_hangs.value_or(-1);
  job_spec.max_node_losses = config.max_node_losses.value_or(-1);
  job_spec.restart_backoff = config.restart_backoff;
  job_spec.startup_failures = config.startup_failures;
  job_spec.link_check_bytes = config.link_check_bytes;
  job_spec.exclude_after = config.exclude_after;
  job_spec.stops_on_repeat = config.stops_on_repeat;
  job_spec.stragglers = config.stragglers;
  job_spec.has_fixed_ranks = rendezvous.backend == Backend::Static;
  job_spec.is_agent_store = rendezvous.worker_store == WorkerStore::Agent;
  job_spec.is_store_for_members = rendezvous.is_store_for_members;
  job_spec.is_store_on_main_port = rendezvous.is_store_at_endpoint();
  job_spec.master_addr = rendezvous.master_addr.value_or("");
  job_spec.master_port = rendezvous.master_port.value_or(uint16_t{0});
  if (job_spec.is_store_on_main_port) job_spec.master_port = rendezvous.endpoint.port;
  job_spec.last_call = rendezvous.conf.last_call.value_or(Duration{-1});
  job_spec.expected_nodes = rendezvous.expected_nodes;
  job_spec.scale_up_interval = rendezvous.conf.scale_up_interval;
  job_spec.heartbeat = rendezvous.conf.heartbeat;
  job_spec.lease = rendezvous.conf.lease;
  if (job_spec.is_agent_store) {
    options.facts.interface_addresses = interface_addresses(limits::kAddressesPerNode);
  }
  options.facts.local_addr = rendezvous.local_addr;
  options.facts.nproc = config.workers.nproc;
  options.facts.role = config.workers.role;
  options.facts.clock_domain = own_clock_domain();
  options.facts.reports_progress = true;
  options.facts.reports_log_lines = true;
  options.facts.knows_slow_ranks = true;
  options.facts.reads_log_files = true;
  options.facts.has_default_run_id = rendezvous.has_default_run_id;
  options.facts.pid = ::getpid();
  options.facts.has_snapshot_dir = !config.snapshot_dir.empty();
  options.facts.keeps_replicas = config.keeps_replicas;
  if (rendezvous.node_rank) options.facts.node_rank = *rendezvous.node_rank;
  options.endpoint = to_string(rendezvous.endpoint);
  options.join_timeout = rendezvous.conf.join_timeout;
  options.stop_grace = config.stop_grace;
  options.keeps_survivors = config.regroup_timeout > Duration{};
  options.has_further_ports = !rendezvous.further_ports.empty();
  options.has_node_check = !config.node_check.command.empty();
  options.is_led_by_election = rendezvous.backend == Backend::Etcd;
  return options;
}

}  // namespace cpprun
