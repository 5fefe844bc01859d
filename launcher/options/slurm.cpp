#include "launcher/options/slurm.hpp"

#include <algorithm>
#include <utility>

#include "common/limits/rendezvous.hpp"
#include "common/node_list.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

// Slurm gives the batch script, the interactive shell of salloc and the external step ids from here
// on; no srun has started these.
constexpr int64_t kSpecialSteps = 0xffff'fff0;

std::optional<int64_t> number(const Environment& environment, std::string_view name) {
  const std::optional<int64_t> value = text::parse_int(environment.text(name));
  return value && *value >= 0 ? value : std::nullopt;
}

// The number of tasks on the node `node_id`, from a list such as "4(x2),3"; 1 if it has none.
int64_t tasks_on_node(std::string_view list, int64_t node_id) {
  for (const std::string& entry : text::split(list, ',')) {
    const size_t open = entry.find('(');
    const std::optional<int64_t> tasks = text::parse_int(entry.substr(0, open));
    int64_t times = 1;
    if (open != std::string::npos) {
      const std::string repeat = entry.substr(open);
      const bool is_repeat = repeat.starts_with("(x") && repeat.ends_with(')');
      if (!is_repeat) return 1;
      times = text::parse_int(repeat.substr(2, repeat.size() - 3)).value_or(0);
    }
    if (!tasks || *tasks < 1 || times < 1) return 1;
    if (node_id < times) return *tasks;
    node_id -= times;
  }
  return 1;
}

// A program that runs in a step and submits another job passes the step's variables on: then
// this node is not in the list of the step's nodes.
bool is_of_another_job(const Environment& environment, const std::vector<std::string>& nodes) {
  const std::string name(environment.text("SLURMD_NODENAME"));
  return !name.empty() && std::ranges::find(nodes, name) == nodes.end();
}

Result<std::optional<SlurmStep>> read_step(const Environment& environment) {
  const std::string_view list = environment.text("SLURM_STEP_NODELIST");
  const std::optional<int64_t> id = number(environment, "SLURM_STEP_ID");
  if (list.empty() || !id || *id >= kSpecialSteps) return std::optional<SlurmStep>();
  Result<std::vector<std::string>> nodes = expand_node_list(list);
  if (!nodes) {
    return Error{ErrorKind::BadValue, "SLURM_STEP_NODELIST: " + nodes.error().text +
                                          "; --cluster=none ignores Slurm's variables"};
  }
  if (is_of_another_job(environment, *nodes)) return std::optional<SlurmStep>();
  SlurmStep step;
  step.id = *id;
  step.nodes = std::move(*nodes);
  step.node_id = number(environment, "SLURM_NODEID").value_or(0);
  step.local_id = number(environment, "SLURM_LOCALID").value_or(0);
  step.tasks_here = tasks_on_node(environment.text("SLURM_STEP_TASKS_PER_NODE"), step.node_id);
  const std::string_view name = environment.text("SLURMD_NODENAME");
  step.is_on_first = name.empty() ? step.node_id == 0 : name == step.nodes.front();
  const bool is_known = step.node_id < static_cast<int64_t>(step.nodes.size());
  step.name = !name.empty() ? std::string(name)
              : is_known    ? step.nodes[static_cast<size_t>(step.node_id)]
                            : "";
  return std::optional<SlurmStep>(std::move(step));
}

}  // namespace

Result<std::optional<SlurmJob>> read_slurm_job(const Environment& environment) {
  const std::optional<int64_t> id = number(environment, "SLURM_JOB_ID");
  if (!id) return std::optional<SlurmJob>();
  Result<std::optional<SlurmStep>> step = read_step(environment);
  if (!step) return step.error();
  SlurmJob job;
  job.id = std::to_string(*id);
  job.nodes = number(environment, "SLURM_JOB_NUM_NODES").value_or(1);
  job.restarts = number(environment, "SLURM_RESTART_COUNT").value_or(0);
  job.gpus_here = number(environment, "SLURM_GPUS_ON_NODE");
  job.step = std::move(*step);
  return std::optional<SlurmJob>(std::move(job));
}

std::vector<uint16_t> ports_of_step(const SlurmJob& job, const SlurmStep& step) {
  constexpr uint64_t kFirst = limits::kChosenPortFirst;
  constexpr uint64_t kPorts = limits::kChosenPorts;
  constexpr uint64_t kStride = 2'503;   // a prime, so the first ports of other jobs are rare here
  constexpr uint64_t kStepsOfJob = 16;  // neighbouring jobs get different ports for so many steps
  const auto id = static_cast<uint64_t>(text::parse_int(job.id).value_or(0));
  const uint64_t place = (id % kPorts) * kStepsOfJob + static_cast<uint64_t>(step.id);
  std::vector<uint16_t> ports;
  for (uint64_t i = 0; i < limits::kDerivedPorts; ++i) {
    ports.push_back(static_cast<uint16_t>(kFirst + (place + i * kStride) % kPorts));
  }
  return ports;
}

}  // namespace cpprun
