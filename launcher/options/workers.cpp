// How many workers, what they are called, and what each one sees of the machine.
#include "common/limits.hpp"
#include "common/text.hpp"
#include "launcher/options/nproc.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

// As torchrun: the agent's own list is dealt out one by one, so it must be long enough.
Status check_virtual_local_rank(const ParsedOptions& options, const Environment& environment,
                                int nproc) {
  if (!options.virtual_local_rank) return {};
  std::string_view list = environment.text("CUDA_VISIBLE_DEVICES");
  if (list.empty()) return {};
  size_t count = text::split(list, ',').size();
  if (count >= static_cast<size_t>(nproc)) return {};
  return bad_value("--virtual-local-rank gives each worker one device, but CUDA_VISIBLE_DEVICES=" +
                   std::string(list) + " has " + text::count(count, "entry") + " for " +
                   text::count(static_cast<size_t>(nproc), "worker"));
}

Status check_numa_binding(const ParsedOptions& options, const Environment& environment) {
  if (options.numa_binding.empty()) return {};
  std::string what = options.shown("numa-binding", options.numa_binding);
  GpuProbe gpus = environment.probe_gpus();
  if (gpus.count == 0) {
    return bad_value(what + " binds workers near their GPUs, but none was found (" + gpus.why_none +
                     "); leave the option out");
  }
  if (find_program(environment, "numactl").empty()) {
    return bad_value(
        what +
        " needs the program numactl, which is not on PATH; install it (apt install numactl)");
  }
  return {};
}

Result<PassLocalRank> parse_pass_local_rank(const ParsedOptions& options) {
  if (options.pass_local_rank.empty()) return PassLocalRank::No;
  if (options.pass_local_rank == "underscore") return PassLocalRank::Underscore;
  if (options.pass_local_rank == "dash") return PassLocalRank::Dash;
  return bad_value(options.shown("pass-local-rank", options.pass_local_rank) +
                   ": write underscore or dash");
}

}  // namespace

Status resolve_workers(const ParsedOptions& options, const Environment& environment,
                       Launch& launch) {
  Result<int> nproc = resolve_nproc(options, environment);
  if (!nproc) return nproc.error();
  if (options.role.size() > limits::kNameBytes) {
    return bad_value("--role is longer than " + std::to_string(limits::kNameBytes) + " bytes");
  }
  if (Status status = check_virtual_local_rank(options, environment, *nproc); !status)
    return status;
  if (Status status = check_numa_binding(options, environment); !status) return status;
  Result<PassLocalRank> pass = parse_pass_local_rank(options);
  if (!pass) return pass.error();

  WorkerConfig& workers = launch.config.workers;
  workers.nproc = *nproc;
  workers.role = options.role;
  workers.pass_local_rank = *pass;
  workers.tunes_malloc = options.tune_malloc;
  workers.is_virtual_local_rank = options.virtual_local_rank;
  workers.numa_binding = options.numa_binding;
  workers.set_omp_num_threads = *nproc > 1 && !environment.variable("OMP_NUM_THREADS");
  return {};
}

}  // namespace cpprun
