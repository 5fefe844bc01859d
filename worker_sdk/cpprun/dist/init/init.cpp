#include <signal.h>

#include <numeric>

#include "cpprun/dist/backend/backend_map.hpp"
#include "cpprun/dist/backend/nccl_plugin.hpp"
#include "cpprun/dist/group/group_registry.hpp"
#include "cpprun/dist/group/make_group.hpp"
#include "cpprun/dist/init/init_plan.hpp"
#include "cpprun/dist/init/store_rendezvous.hpp"

namespace cpprun::dist {
namespace {

// Fails before the rendezvous if this process cannot use the backend.
void check_backend(const std::string& backend) {
  for (const auto& [device, name] : parse_backend(backend)) {
    if (name == "nccl") nccl_plugin_with_gpu();
  }
}

bool is_automatic(const std::string& backend) { return backend.empty() || backend == "auto"; }

// The master's address decides which of this host's addresses the other ranks can reach.
std::string master_of(const InitPlan& plan) {
  if (!plan.host.empty() && !plan.is_hosted_elsewhere) return plan.host;
  return own_variable("MASTER_ADDR").value_or(plan.host);
}

GroupPlan group_plan(const InitOptions& options, const InitPlan& plan, const std::string& backend) {
  GroupPlan group;
  group.registration.call = "init_process_group with " + plan.shown;
  group.registration.rank = plan.rank;
  group.registration.ranks.resize(static_cast<size_t>(plan.world_size));
  std::iota(group.registration.ranks.begin(), group.registration.ranks.end(), 0);
  group.name = registry::next_name();
  group.shown_name = options.group_name.empty() ? group.name : options.group_name;
  group.backend = backend;
  group.timeout = options.timeout.value_or(default_timeout(backend));
  group.options = options.pg_options;
  group.device = options.device_id;
  group.master_address = master_of(plan);
  return group;
}

// Gloo writes to sockets that the death of a peer, or the end of a round, has shut down. The signal
// would end the process; without it the collective fails with an error.
void ignore_sigpipe() {
  struct sigaction now {};
  ::sigaction(SIGPIPE, nullptr, &now);
  if (now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

ProcessGroupGuard start(const InitOptions& options, const InitPlan& plan) {
  const std::string backend =
      is_automatic(options.backend) ? automatic_backend(has_gpu()) : options.backend;
  check_backend(backend);
  auto device = own_device(backend, options.device_id, get_local_rank());
  const bool is_chosen = options.device_id && options.device_id->has_index();
  if (device && !is_chosen) device = visible_device(*device, device_count(device->type()));
  if (device) use_device(*device);
  ignore_sigpipe();
  GroupPlan group = group_plan(options, plan, backend);
  try {
    const StoreRendezvous rendezvous = connect_store(plan, options.store, group.timeout);
    group.registration.store = rendezvous.store;
    group.registration.is_host = rendezvous.is_host;
    const auto state = make_group(group);
    state->device = device;
    state->leave = [plan, store = state->store] { leave_file(plan, *store); };
    registry::set_default(state);
    retire_at_exit();
    return ProcessGroupGuard(ProcessGroup(state));
  } catch (...) {
    registry::remove_all();  // the next attempt must use Python's first name again
    throw;
  }
}

}  // namespace

ProcessGroupGuard init_process_group(InitOptions options) {
  registry::check_no_default();
  check_timeout("init_process_group", options);
  return start(options, make_init_plan(options, own_variable));
}

namespace {

// Launchers that start several processes but do not set RANK and WORLD_SIZE. Each process would
// train alone, and all would write into one snapshot folder.
void refuse_other_launchers() {
  // SLURM_NTASKS is also set in batch scripts, which run once; srun sets SLURM_STEP_NUM_TASKS.
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const std::string count = own_variable(name).value_or("");
    if (count.empty() || count == "0" || count == "1") continue;
    throw DistArgumentError(
        std::string("init_process_group_or_single: ") + name + " is " + count +
        ", so this is one of several processes, but RANK and WORLD_SIZE are not set; start one "
        "cpprun per node (srun cpprun ...), or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  }
}

}  // namespace

ProcessGroupGuard init_process_group_or_single(InitOptions options) {
  const bool is_alone = !options.store && options.init_method.empty() && options.rank == -1 &&
                        options.world_size == -1 && !own_variable("RANK") &&
                        !own_variable("WORLD_SIZE");
  if (is_alone) {
    refuse_other_launchers();
    options.store = make_hash_store();
    options.rank = 0;
    options.world_size = 1;
  }
  return init_process_group(std::move(options));
}

}  // namespace cpprun::dist
