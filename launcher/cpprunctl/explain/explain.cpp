#include "launcher/cpprunctl/explain/explain.hpp"

#include <algorithm>
#include <vector>

#include "common/text.hpp"
#include "launcher/options/options.hpp"

namespace cpprun {

Result<std::string> explain(const std::vector<std::string>& words) {
  const Result<ctl::LauncherCommand> line = ctl::read_launcher_command(words);
  if (!line) return line.error();
  Environment environment = real_environment();
  environment.variables.insert(environment.variables.begin(), line->variables.rbegin(),
                               line->variables.rend());  // the first of a name counts
  // The user may ask on another machine than the one that has the script.
  std::string missing;
  environment.look_at = [look_at = environment.look_at, &line, &missing](const std::string& path) {
    const FileFacts facts = look_at(path);
    const bool is_typed = std::ranges::find(line->words, path) != line->words.end();
    if (facts.kind != FileKind::Missing || !is_typed) return facts;
    missing = path;
    return FileFacts{FileKind::Other, false};
  };
  const Result<OptionsResult> options_result = read_options(line->words, environment);
  if (!options_result) return options_result.error();
  if (const auto* shown = std::get_if<TextToShow>(&*options_result)) return shown->text;
  if (const auto* over_ssh = std::get_if<LaunchOverSsh>(&*options_result)) {
    const ParsedOptions& options = over_ssh->options;
    return "command     one cpprun over ssh on each host of " +
           (options.is_given("hosts") ? options.hosts : options.hostfile) + "\n";
  }
  const auto& launch = std::get<Launch>(*options_result);
  std::string text = ctl::explanation(launch.config);
  if (!missing.empty()) text += "warning: " + missing + " does not exist here\n";
  for (const std::string& warning : launch.warnings) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace cpprun

namespace cpprun::ctl {
namespace {

std::string range(int least, int most) {
  const std::string text = std::to_string(least);
  return least == most ? text : text + " to " + std::to_string(most);
}

std::string command(const WorkerConfig& workers) {
  std::vector<std::string> words = workers.program;
  words.insert(words.end(), workers.arguments.begin(), workers.arguments.end());
  return text::join(words, " ");
}

std::string workers(const AgentConfig& config) {
  const RendezvousConfig& rendezvous = config.rendezvous;
  const int nproc = config.workers.nproc;
  const std::string nodes = range(rendezvous.min_nodes, rendezvous.max_nodes);
  return nodes + (rendezvous.max_nodes == 1 ? " node x " : " nodes x ") + std::to_string(nproc) +
         " = " + range(rendezvous.min_nodes * nproc, rendezvous.max_nodes * nproc);
}

std::string meeting(const RendezvousConfig& rendezvous) {
  const std::string job = ", job id \"" + rendezvous.run_id + "\"";
  if (rendezvous.is_standalone) return "on this machine, at a free port of loopback" + job;
  const bool is_etcd = rendezvous.backend == Backend::Etcd;
  std::string where = is_etcd ? "" : to_string(rendezvous.endpoint);
  for (const Endpoint& member : rendezvous.etcd.endpoints) {
    where += (where.empty() ? "" : ", ") + to_string(member);
  }
  if (is_etcd) where += " (the leader is elected there)";
  const bool is_shared = rendezvous.run_id == "none" && rendezvous.backend != Backend::Static;
  return std::string(name_of(rendezvous.backend)) + " at " + where + job +
         (is_shared ? " (set --rdzv-id: jobs without one share it)" : "");
}

std::string store(const RendezvousConfig& rendezvous) {
  if (rendezvous.worker_store == WorkerStore::Agent) return "cpprun serves MASTER_PORT";
  return "worker 0 serves MASTER_PORT" + (rendezvous.master_port
                                              ? ", " + std::to_string(*rendezvous.master_port)
                                              : std::string(", a new one each round"));
}

std::string logs(const AgentConfig& config) {
  if (config.logs.dir == "/dev/null") return "no files";
  return config.logs.dir.empty() ? "a temporary folder, kept only if its logs may be needed"
                                 : config.logs.dir;
}

std::string restarts(const AgentConfig& config) {
  std::string text =
      std::to_string(config.max_restarts) + " after failures of workers, over all nodes";
  if (config.max_hangs) text += ", " + std::to_string(*config.max_hangs) + " after hangs";
  if (config.max_node_losses) {
    text += ", " + std::to_string(*config.max_node_losses) + " after losses of nodes";
  }
  if (config.snapshot_dir.empty()) return text;
  return text + ", from the newest snapshot in " + config.snapshot_dir;
}

// Differences that can change a user's result.
std::vector<std::string> differences(const AgentConfig& config) {
  std::vector<std::string> all = {"the exit code after a signal is 128 + its number, not 1"};
  if (config.rendezvous.worker_store == WorkerStore::Rank0) {
    all.emplace_back(
        "worker 0 serves MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=False), so a script may set "
        "MASTER_ADDR and MASTER_PORT itself");
  }
  if (config.max_restarts > 0) {
    const bool is_chosen =
        config.rendezvous.master_port || config.rendezvous.is_store_at_endpoint();
    all.emplace_back(is_chosen ? "each round has a new, empty store, at the port that was asked for"
                               : "each round has a new, empty store and a new port");
  }
  if (config.rendezvous.max_nodes > 1) {
    all.emplace_back("--max-restarts counts for the job, not for each node");
    all.emplace_back("agents of torchrun can't take part");
  }
  if (config.logs.dir.empty()) all.emplace_back("the log folder is removed after success");
  return all;
}

}  // namespace

std::string explanation(const AgentConfig& config) {
  std::string shown = "command     " + command(config.workers) + "\n";
  shown += "workers     " + workers(config) + "\n";
  shown += "rendezvous  " + meeting(config.rendezvous) + "\n";
  shown += "store       " + store(config.rendezvous) + "\n";
  shown += "restarts    " + restarts(config) + "\n";
  shown += "logs        " + logs(config) + "\n";
  shown += "differs from torchrun:\n";
  for (const std::string& difference : differences(config)) shown += "  " + difference + "\n";
  return shown;
}

}  // namespace cpprun::ctl
