// Options of the workers: their number, environment, devices and CPUs.
#include <algorithm>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

constexpr std::string_view kNprocName = "nproc-per-node";

Error nothing_to_count(const ParsedOptions& options, const Environment& environment,
                       const std::string& found) {
  size_t cpus = static_cast<size_t>(environment.count_cpus());
  return bad_value(found + ", so " + options.shown(kNprocName, options.nproc_per_node) +
                   " has nothing to count\nhint: use a number (" + options.shown(kNprocName, "2") +
                   ") or " + options.shown(kNprocName, "cpu") + " (" + text::count(cpus, "worker") +
                   " here)");
}

Result<int> checked_number(const ParsedOptions& options, int64_t number) {
  if (number > 0 && number <= limits::kWorkersPerNode) return static_cast<int>(number);
  return bad_value(options.shown(kNprocName, number) + ": the number of workers goes from 1 to " +
                   std::to_string(limits::kWorkersPerNode));
}

// Under a scheduler, which may give a job a part of a machine, only the CPUs of the job count.
int count_cpus(const Environment& environment, const ClusterConfig& cluster) {
  const int all = environment.count_cpus();
  if (cluster.kind == ClusterConfig::Kind::None) return all;
  return std::min(all, environment.count_usable_cpus());
}

// A worker for each CPU.
int count_workers(const Environment& environment, Launch& launch) {
  const int usable = count_cpus(environment, launch.config.cluster);
  const int all = environment.count_cpus();
  if (usable < all) {
    launch.add_inferred(text::count(static_cast<size_t>(usable), "worker") + " per node (" +
                        std::to_string(usable) + " of " + std::to_string(all) + " CPUs)");
  }
  return usable;
}

// --nproc-per-node: a number, or a word such as "gpu" whose devices are counted.
Result<int> resolve_nproc(const ParsedOptions& options, const Environment& environment,
                          Launch& launch) {
  const std::string& token = options.nproc_per_node;
  if (std::optional<int64_t> number = text::parse_int(token))
    return checked_number(options, *number);
  if (token == "cpu") return count_workers(environment, launch);
  if (token == "auto") {
    int gpus = environment.probe_gpus().count;
    return gpus > 0 ? gpus : count_workers(environment, launch);
  }
  if (token == "gpu") {
    GpuProbe gpus = environment.probe_gpus();
    if (gpus.count > 0) return gpus.count;
    return nothing_to_count(options, environment, "no GPU found (" + gpus.why_none + ")");
  }
  // Their number depends on Level Zero: tiles, integrated GPUs, ZE_AFFINITY_MASK.
  if (token == "xpu") {
    return bad_value(
        options.shown(kNprocName, token) + ": cpprun cannot count XPUs\nhint: " +
        options.shown(kNprocName, "$(python3 -c 'import torch; print(torch.xpu.device_count())')"));
  }
  return bad_value(options.shown(kNprocName, token) +
                   " is not known\nhint: use a number, cpu, gpu or auto");
}

// As in torchrun, each worker gets one entry of the agent's own list, so it must be long enough.
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

Status bind_to_cpus(const ParsedOptions& options, const Environment& environment,
                    WorkerConfig& workers) {
  if (options.numa_binding.empty()) return {};
  std::string what = options.shown("numa-binding", options.numa_binding);
  GpuProbe gpus = environment.probe_gpus();
  if (gpus.count == 0) {
    return bad_value(what + " binds workers near their GPUs, but none was found (" + gpus.why_none +
                     ")\nhint: leave the option out");
  }
  const Topology topology = environment.read_topology();
  for (int worker = 0; worker < workers.nproc; ++worker) {
    Result<std::vector<int>> cpus = cpus_near(topology, options.numa_binding, worker);
    if (!cpus) return cpus.error();
    workers.cpus.push_back(std::move(*cpus));
  }
  return {};
}

// Only a warning: a job that uses no GPU is legal on a machine that has some.
void warn_of_too_few_gpus(const Environment& environment, int nproc, Launch& launch) {
  if (nproc == 1) return;
  const GpuProbe gpus = environment.probe_gpus();
  if (gpus.count == 0 || gpus.count >= nproc) return;
  launch.warnings.push_back(std::to_string(nproc) + " workers but " +
                            text::count(static_cast<size_t>(gpus.count), "visible GPU") +
                            ": some share one, or find none (--nproc-per-node)");
}

Result<int> resolve_omp_threads(const ParsedOptions& options, const Environment& environment,
                                int nproc, const ClusterConfig& cluster) {
  constexpr int64_t kMost = 100'000;
  if (options.omp_threads.empty()) return 0;
  if (options.omp_threads == "auto") return std::max(1, count_cpus(environment, cluster) / nproc);
  const std::optional<int64_t> number = text::parse_int(options.omp_threads);
  if (number && *number > 0 && *number <= kMost) return static_cast<int>(*number);
  return bad_value(options.shown("omp-threads", options.omp_threads) +
                   " is no valid value\nhint: write the number of threads of each worker, or auto");
}

Result<PassLocalRank> parse_pass_local_rank(const ParsedOptions& options) {
  if (options.pass_local_rank.empty()) return PassLocalRank::No;
  if (options.pass_local_rank == "underscore") return PassLocalRank::Underscore;
  if (options.pass_local_rank == "dash") return PassLocalRank::Dash;
  return bad_value(options.shown("pass-local-rank", options.pass_local_rank) +
                   " is no valid value\nhint: write underscore or dash");
}

}  // namespace

Status resolve_workers(const ParsedOptions& options, const Environment& environment,
                       Launch& launch) {
  Result<int> nproc = resolve_nproc(options, environment, launch);
  if (!nproc) return nproc.error();
  if (options.role.size() > limits::kNameBytes) {
    return bad_value("--role is longer than " + std::to_string(limits::kNameBytes) + " bytes");
  }
  if (Status status = check_virtual_local_rank(options, environment, *nproc); !status)
    return status;
  warn_of_too_few_gpus(environment, *nproc, launch);
  Result<PassLocalRank> pass = parse_pass_local_rank(options);
  if (!pass) return pass.error();

  WorkerConfig& workers = launch.config.workers;
  workers.nproc = *nproc;
  workers.role = options.role;
  workers.pass_local_rank = *pass;
  workers.tunes_malloc = options.tune_malloc;
  workers.is_virtual_local_rank = options.virtual_local_rank;
  if (Status status = bind_to_cpus(options, environment, workers); !status) return status;
  Result<int> threads = resolve_omp_threads(options, environment, *nproc, launch.config.cluster);
  if (!threads) return threads.error();
  workers.omp_threads = *threads;
  workers.set_omp_num_threads =
      *threads == 0 && *nproc > 1 && !environment.variable("OMP_NUM_THREADS");
  return {};
}

}  // namespace cpprun
