// Slurm's description of a process's job, from SLURM_* variables. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "launcher/options/environment.hpp"

namespace cpprun {

// The step that `srun` started this process in.
struct SlurmStep {
  int64_t id = 0;
  std::vector<std::string> nodes;
  std::string name;          // of this node in `nodes`; empty: unknown
  int64_t node_id = 0;       // place of this node in the step
  int64_t local_id = 0;      // of this task on its node
  int64_t tasks_here = 1;    // tasks of the step on this node
  bool is_on_first = false;  // this node is the first of `nodes`
};

struct SlurmJob {
  std::string id;  // decimal
  int64_t nodes = 1;
  int64_t restarts = 0;  // how often Slurm has requeued the job
  std::optional<int64_t> gpus_here;
  // Unset: this process runs in an allocation, but no srun has started it.
  std::optional<SlurmStep> step;
};

// nullopt: outside of Slurm. An error: the variables of the step make no sense.
Result<std::optional<SlurmJob>> read_slurm_job(const Environment& environment);

// limits::kDerivedPorts different ports, f(job, step), in the order in which to try them. Between
// 10000 and 29999: below the ports that Linux gives to outgoing connections.
std::vector<uint16_t> ports_of_step(const SlurmJob& job, const SlurmStep& step);

}  // namespace cpprun
