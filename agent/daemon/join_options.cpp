#include "agent/daemon/join_options.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "agent/process/proc_files.hpp"
#include "common/proof/node_id.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

// Of CLOCK_BOOTTIME: the same text in all processes that share it, and in no others.
// One kernel, one time namespace.
std::string own_clock_id() {
  std::error_code error;
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/time", error).string();
  const std::string boot = read_small_file("/proc/sys/kernel/random/boot_id");
  return boot.empty() ? "" : std::string(text::strip(boot)) + " " + space;
}

}  // namespace

agent::AgentOptions join_options(const AgentConfig& config, const std::string& host_name,
                                 const std::string& key) {
  const RendezvousConfig& rendezvous = config.rendezvous;
  agent::AgentOptions options;
  options.hello = control::Hello{control::kProtocolVersion, CPPRUN_VERSION,
                                 rendezvous.run_id,         NodeId{host_name, node_id_of(key)},
                                 first_connection_of(key),  key};
  control::Terms& terms = options.facts.terms;
  terms.min_nodes = rendezvous.min_nodes;
  terms.max_nodes = rendezvous.max_nodes;
  terms.max_restarts = config.max_restarts;
  terms.startup_failures = config.startup_failures;
  terms.has_fixed_ranks = rendezvous.backend == Backend::Static;
  terms.is_agent_store = rendezvous.worker_store == WorkerStore::Agent;
  terms.is_store_on_main_port = rendezvous.is_store_at_endpoint();
  terms.master_addr = rendezvous.master_addr.value_or("");
  terms.master_port = rendezvous.master_port.value_or(uint16_t{0});
  if (terms.is_store_on_main_port) terms.master_port = rendezvous.endpoint.port;
  terms.last_call = rendezvous.conf.last_call.value_or(Duration{-1});
  terms.scale_up_interval = rendezvous.conf.scale_up_interval;
  terms.heartbeat = rendezvous.conf.heartbeat;
  terms.lease = rendezvous.conf.lease;
  options.facts.local_addr = rendezvous.local_addr;
  options.facts.nproc = config.workers.nproc;
  options.facts.role = config.workers.role;
  options.facts.clock_id = own_clock_id();
  options.facts.tells_progress = true;
  options.facts.tells_lines = true;
  options.facts.has_default_run_id = rendezvous.has_default_run_id;
  options.facts.pid = ::getpid();
  options.facts.has_snapshot_dir = !config.snapshot_dir.empty();
  options.facts.keeps_copies = config.keeps_copies;
  if (rendezvous.node_rank) options.facts.node_rank = *rendezvous.node_rank;
  options.endpoint = to_string(rendezvous.endpoint);
  options.join_timeout = rendezvous.conf.join_timeout;
  options.stop_grace = config.stop_grace;
  options.is_led_by_election = rendezvous.backend == Backend::Etcd;
  return options;
}

}  // namespace cpprun
