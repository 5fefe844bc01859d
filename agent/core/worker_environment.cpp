#include "agent/core/worker_environment.hpp"

#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "agent/core/string_template.hpp"
#include "common/text.hpp"

namespace cpprun::agent {
namespace {

using Variable = std::pair<std::string, std::string>;

std::optional<std::string> inherited(const AgentConfig& config, std::string_view name) {
  for (const std::string& entry : config.environment) {
    if (const auto value = text::value_of(entry, name)) return std::string(*value);
  }
  return std::nullopt;
}

// Devices by local rank; empty: the environment lists none.
std::vector<std::string> device_list(const AgentConfig& config) {
  std::optional<std::string> devices = inherited(config, "CUDA_VISIBLE_DEVICES");
  if (!devices || devices->empty()) return {};
  std::vector<std::string> names = text::split(*devices, ',');
  for (std::string& name : names) name = std::string(text::strip(name));
  return names;
}

std::string virtual_device(const AgentConfig& config, int local_rank) {
  std::vector<std::string> devices = device_list(config);
  if (devices.empty()) return std::to_string(local_rank);
  return devices.at(static_cast<size_t>(local_rank));
}

std::vector<Variable> rank_variables(const AgentConfig& config,
                                     const control::RankAssignment& assignment, int local_rank) {
  bool is_virtual = config.workers.is_virtual_local_rank;
  auto text = [](int64_t number) { return std::to_string(number); };
  return {{"LOCAL_RANK", text(is_virtual ? 0 : local_rank)},
          {"RANK", text(assignment.base_rank + local_rank)},
          {"GROUP_RANK", text(assignment.group_rank)},
          {"ROLE_RANK", text(assignment.base_role_rank + local_rank)},
          {"ROLE_NAME", config.workers.role},
          {"LOCAL_WORLD_SIZE", text(config.workers.nproc)},
          {"WORLD_SIZE", text(assignment.world_size)},
          {"GROUP_WORLD_SIZE", text(assignment.group_size)},
          {"ROLE_WORLD_SIZE", text(assignment.role_world_size)},
          {"MASTER_ADDR", assignment.master_addr},
          {"MASTER_PORT", text(assignment.master_port)}};
}

std::vector<Variable> elastic_variables(const AgentConfig& config,
                                        const control::RankAssignment& assignment,
                                        const LaunchContext& context) {
  return {{"TORCHELASTIC_RESTART_COUNT", std::to_string(restarts_of(assignment))},
          {"TORCHELASTIC_MAX_RESTARTS", std::to_string(assignment.max_restarts)},
          {"TORCHELASTIC_RUN_ID", config.rendezvous.run_id},
          {"TORCHELASTIC_USE_AGENT_STORE", assignment.is_agent_store ? "True" : "False"},
          {"TORCHELASTIC_SIGNALS_TO_HANDLE", config.signals_text},
          {"TORCHELASTIC_ERROR_FILE", context.error_file},
          {"CPPRUN_ROUND", std::to_string(assignment.round.value)},
          {"CPPRUN_STORE", context.store},
          {"CPPRUN_TOKEN", context.token},
          {"CPPRUN_AGENT", context.agent}};
}

// Without these glibc returns the big blocks of activations to the kernel at every step and faults
// them in again: 17 to 23 % of the CPU time of small convolution nets.
constexpr std::array<std::pair<const char*, const char*>, 3> kMallocVariables{{
    {"MALLOC_MMAP_THRESHOLD_", "1073741824"},
    {"MALLOC_TRIM_THRESHOLD_", "2000000000"},
    {"MALLOC_TOP_PAD_", "67108864"},
}};

std::vector<Variable> optional_variables(const AgentConfig& config, int local_rank) {
  std::vector<Variable> variables;
  if (!inherited(config, "TORCH_NCCL_ASYNC_ERROR_HANDLING")) {
    variables.emplace_back("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  }
  if (!config.timer_file.empty())
    variables.emplace_back("TORCHELASTIC_TIMER_FILE", config.timer_file);
  if (config.workers.omp_threads > 0) {
    variables.emplace_back("OMP_NUM_THREADS", std::to_string(config.workers.omp_threads));
  } else if (config.workers.set_omp_num_threads) {
    variables.emplace_back("OMP_NUM_THREADS", "1");
  }
  if (config.workers.is_virtual_local_rank) {
    variables.emplace_back("CUDA_VISIBLE_DEVICES", virtual_device(config, local_rank));
  }
  for (const auto& [name, value] : kMallocVariables) {
    if (config.workers.tunes_malloc && !inherited(config, name)) {
      variables.emplace_back(name, value);
    }
  }
  return variables;
}

constexpr const char* kResumeFrom = "CPPRUN_RESUME_FROM";

std::vector<Variable> snapshot_variables(const AgentConfig& config,
                                         const control::RankAssignment& assignment) {
  if (config.snapshot_dir.empty()) return {};
  std::vector<Variable> variables{{"CPPRUN_SNAPSHOT_DIR", config.snapshot_dir}};
  if (assignment.resume) {
    const std::string step = std::to_string(assignment.resume->snapshot.step);
    variables.emplace_back(kResumeFrom, config.snapshot_dir + "/step-" + step);
  }
  return variables;
}

constexpr const char* kFaults = "CPPRUN_FAULTS";

// Adds the plan's faults to inline faults of the user's own CPPRUN_FAULTS. If that names a plan
// file, the launcher has read it into the plan.
std::vector<Variable> fault_variables(const AgentConfig& config,
                                      const control::RankAssignment& assignment) {
  if (!config.faults.plan) return {};
  const std::string own = inherited(config, kFaults).value_or("");
  std::string text =
      faults::worker_text(*config.faults.plan, assignment.world_size, assignment.group_size);
  if (faults::is_inline(own)) text = own + (text.empty() ? "" : ";") + text;
  return {{kFaults, text}};
}

// Those that are new in each round.
std::vector<Variable> variables_of_round(const AgentConfig& config,
                                         const control::RankAssignment& assignment,
                                         const LaunchContext& context, int local_rank) {
  std::vector<Variable> all = rank_variables(config, assignment, local_rank);
  for (Variable& v : elastic_variables(config, assignment, context)) all.push_back(std::move(v));
  for (Variable& v : snapshot_variables(config, assignment)) all.push_back(std::move(v));
  for (Variable& v : fault_variables(config, assignment)) all.push_back(std::move(v));
  return all;
}

}  // namespace

int64_t restarts_of(const control::RankAssignment& assignment) {
  return assignment.restart_count + assignment.hang_restarts;
}

std::vector<std::string> worker_argv(const WorkerConfig& config, int local_rank) {
  const std::string rank = std::to_string(local_rank);
  std::vector<std::string> argv{config.program.front()};
  for (size_t i = 1; i < config.program.size(); ++i) {
    argv.push_back(safe_substitute(config.program[i], {{"local_rank", rank}}));
  }
  if (config.pass_local_rank == PassLocalRank::Dash) argv.push_back("--local-rank=" + rank);
  if (config.pass_local_rank == PassLocalRank::Underscore) argv.push_back("--local_rank=" + rank);
  for (const std::string& argument : config.arguments) {
    argv.push_back(safe_substitute(argument, {{"local_rank", rank}}));
  }
  return argv;
}

// The words are positional parameters, which the shell does not interpret.
std::vector<std::string> after_debugger(const std::vector<std::string>& argv) {
  std::vector<std::string> waiting{"/bin/sh", "-c", "kill -STOP $$; exec \"$@\"", "cpprun-debug"};
  waiting.insert(waiting.end(), argv.begin(), argv.end());
  return waiting;
}

std::vector<std::string> worker_environment(const AgentConfig& config,
                                            const control::RankAssignment& assignment,
                                            const LaunchContext& context, int local_rank) {
  std::vector<Variable> ours = variables_of_round(config, assignment, context, local_rank);
  for (Variable& v : optional_variables(config, local_rank)) ours.push_back(std::move(v));
  std::set<std::string_view> replaced;
  // unset for workers that begin at step 0
  if (!config.snapshot_dir.empty()) replaced.insert(kResumeFrom);
  for (const Variable& v : ours) replaced.insert(v.first);
  replaced.insert("CPPRUN_ADMIN_TOKEN");    // workers must not send admin commands
  replaced.insert("CPPRUN_ETCD_PASSWORD");  // nor take part in the election
  replaced.insert("CPPRUN_SECRET");         // nor connect as agents
  replaced.insert("CPPRUN_SECRET_FILE");
  replaced.insert("CPPRUN_NOTIFY_URL");  // often holds a token
  std::vector<std::string> all;
  for (const std::string& entry : config.environment) {
    std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (!replaced.contains(name)) all.push_back(entry);
  }
  for (const auto& [name, value] : ours) all.push_back(name + "=" + value);
  return all;
}

std::vector<std::string> round_variables(const AgentConfig& config,
                                         const control::RankAssignment& assignment,
                                         const LaunchContext& context, int local_rank) {
  std::vector<std::string> all;
  if (!config.snapshot_dir.empty() && !assignment.resume) all.emplace_back(kResumeFrom);
  for (const auto& [name, value] : variables_of_round(config, assignment, context, local_rank)) {
    all.push_back(name + "=" + value);
  }
  return all;
}

std::vector<std::string> common_environment(const AgentConfig& config, const std::string& token) {
  LaunchContext context;
  context.token = token;
  const control::RankAssignment none;
  std::set<std::string> of_ranks;
  for (const Variable& v : rank_variables(config, none, 0)) of_ranks.insert(v.first);
  for (const Variable& v : elastic_variables(config, none, context)) of_ranks.insert(v.first);
  for (const char* name : {kResumeFrom, kFaults, "CUDA_VISIBLE_DEVICES"}) of_ranks.insert(name);
  if (!config.workers.is_virtual_local_rank) of_ranks.erase("CUDA_VISIBLE_DEVICES");
  of_ranks.erase("CPPRUN_TOKEN");
  std::vector<std::string> common;
  for (std::string& entry : worker_environment(config, none, context, 0)) {
    if (!of_ranks.contains(entry.substr(0, entry.find('=')))) common.push_back(std::move(entry));
  }
  return common;
}

std::string chain_token(const AgentConfig& config, const std::string& own) {
  constexpr size_t kChainMax = 512;
  const std::optional<std::string> outer = inherited(config, "CPPRUN_TOKEN");
  return outer && outer->size() < kChainMax ? *outer + "." + own : own;
}

}  // namespace cpprun::agent
