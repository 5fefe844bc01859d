#include "launcher/ssh/plan/launch_plan.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/endpoint.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/ssh.hpp"
#include "common/text.hpp"
#include "launcher/options/node_range.hpp"
#include "launcher/ssh/plan/shell_command.hpp"

namespace cpprun::ssh {
namespace {

using Words = std::vector<std::string>;

// Options that the agents do not get as the user gave them.
constexpr std::array<std::string_view, 16> kOwn = {
    "hosts",          "hostfile",      "include",      "exclude",       "export",  "ssh",
    "ssh-tree",       "remote-cpprun", "nnodes",       "rdzv-endpoint", "rdzv-id", "secret-file",
    "nproc-per-node", "rdzv-conf",     "rdzv-backend", "cluster"};

Result<std::vector<Host>> read_hosts(const ParsedOptions& options, const Environment& environment) {
  if (options.is_given("hosts") && options.is_given("hostfile"))
    return bad_value("--hosts and --hostfile are two ways for the same\nhint: give one of them");
  if (options.is_given("hosts")) return parse_hosts(options.hosts);
  const std::optional<std::string> text =
      environment.read_file(options.hostfile, limits::kHostfileBytes + 1);
  if (text) return parse_hostfile(*text, options.hostfile);
  return bad_value(
      options.shown("hostfile", options.hostfile) +
      " can't be read\nhint: give a file with a line such as `node1 slots=8` for each host");
}

Status refuse_options(const ParsedOptions& options) {
  constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
      {"standalone", "is for one node"},
      {"node-rank", "follows from the order of the hosts"},
      {"local-addr", "differs from host to host"},
      {"master-addr", "is the first host"},
      {"master-port", "is in --rdzv-endpoint=HOST:PORT"},
  };
  for (const auto& [name, why] : kRefused) {
    const bool is_off = name == "standalone" && !options.standalone;
    if (!options.is_given(name) || is_off) continue;
    return bad_value(options.shown(name, "...") +
                     " does not go together with a list of hosts: it " + std::string(why) +
                     "\nhint: leave it out");
  }
  return {};
}

// --nnodes against the list: N must be its length, MIN:MAX must hold it.
Status read_nnodes(const ParsedOptions& options, LaunchPlan& plan) {
  const auto count = static_cast<int64_t>(plan.hosts.size());
  plan.min_nodes = static_cast<int>(count);
  if (!options.is_given("nnodes")) return {};
  const auto range = parse_node_range(options.nnodes);
  const std::string what = options.shown("nnodes", options.nnodes);
  const std::string have = text::count(plan.hosts.size(), "host");
  if (!range)
    return bad_value(what + " is no valid value\nhint: write N or MIN:MAX; the list has " + have);
  if (count < range->first || count > range->second) {
    return bad_value(what + ", but the list has " + have +
                     "\nhint: leave --nnodes out, or write MIN:MAX with " + std::to_string(count) +
                     " in it");
  }
  plan.min_nodes = static_cast<int>(range->first);
  plan.nnodes = options.nnodes;
  return {};
}

bool is_variable_name(std::string_view name) {
  const auto is_fit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
         std::ranges::all_of(name, is_fit);
}

Status read_variable(const Token& token, const Environment& environment, LaunchPlan& plan) {
  const std::string name = token.value.substr(0, token.value.find('='));
  const std::string what = token.spelling + " " + text::one_line(name, limits::kShownListBytes);
  if (!is_variable_name(name))
    return bad_value(what +
                     " is no valid value\nhint: write the name of a variable, or NAME=VALUE");
  if (name == kSecretVariable)
    return bad_value(what + ": the job's secret reaches the hosts without -x\nhint: leave it out");
  if (name.size() < token.value.size()) {
    plan.variables.push_back(token.value);
    return {};
  }
  const std::optional<std::string_view> here = environment.variable(name);
  if (!here) return bad_value(what + " is not set here\nhint: set it, or write NAME=VALUE");
  plan.variables.push_back(name + "=" + std::string(*here));
  return {};
}

// The Python of a virtual environment that is active here: a login by ssh does not activate it.
void add_python(const Environment& environment, LaunchPlan& plan) {
  constexpr std::string_view kName = "PYTHON_EXEC";
  const auto is_given = [&](const std::string& variable) {
    return variable.starts_with("PYTHON_EXEC=") || variable.starts_with("PATH=");
  };
  if (std::ranges::any_of(plan.variables, is_given)) return;
  std::string python(environment.text(kName));
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string_view prefix = environment.text(name);
    if (python.empty() && !prefix.empty()) python = std::string(prefix) + "/bin/python";
  }
  if (!python.empty()) plan.variables.push_back(std::string(kName) + "=" + python);
}

Status read_tokens(const LaunchOverSsh& launch, const Environment& environment, LaunchPlan& plan) {
  size_t bytes = 0;
  for (const Token& token : launch.tokens.options) {
    const std::string_view name = token.option->name;
    if (name == "export") {
      if (Status ok = read_variable(token, environment, plan); !ok) return ok;
      constexpr size_t kWord = 16;  // of its line besides the variable
      bytes += 2 * plan.variables.back().size() + kWord;
    }
    // The allocation is not the agents': their environment comes from sshd.
    const bool is_kept = name == "cluster" && launch.options.is_given("cluster");
    if (std::ranges::find(kOwn, name) != kOwn.end() && !is_kept) continue;
    if (token.option->kind() != OptionKind::Flag) {
      plan.options.push_back("--" + std::string(name) + "=" + token.value);
    } else if (token.value == "true") {
      plan.options.push_back("--" + std::string(name));
    }
  }
  if (!launch.options.is_given("cluster")) plan.options.push_back("--cluster=none");
  add_python(environment, plan);
  if (bytes <= limits::kControlLineBytes) return {};
  return bad_value("the variables of -x are longer than " +
                   std::to_string(limits::kControlLineBytes / 2 / 1024) +
                   " KiB together\nhint: put large values into a file");
}

Status read_rendezvous(const ParsedOptions& options, const Surroundings& here, LaunchPlan& plan) {
  const bool is_given = options.is_given("rdzv-backend");
  const std::string backend = is_given ? options.rdzv_backend : "c10d";
  plan.is_static = backend == "static";
  plan.has_etcd = backend.starts_with("etcd");
  plan.endpoint = text::strip(options.rdzv_endpoint);
  plan.port = here.fresh_port;
  plan.rdzv_conf = options.rdzv_conf;
  if (plan.has_etcd && plan.endpoint.empty())
    return bad_value(options.shown("rdzv-backend", backend) +
                     " needs --rdzv-endpoint=HOST:PORT,... of etcd's members");
  plan.options.push_back("--rdzv-backend=" + backend);
  plan.options.push_back("--rdzv-id=" +
                         (options.is_given("rdzv-id") ? options.rdzv_id : "ssh-" + here.fresh_id));
  return {};
}

Status read_tree(const ParsedOptions& options, LaunchPlan& plan) {
  if (options.ssh_tree.empty() || options.ssh_tree == "no") return {};
  plan.fanout = limits::kSshTreeFanout;
  if (options.ssh_tree == "yes") return {};
  const std::optional<int64_t> fanout = text::parse_int(options.ssh_tree);
  if (!fanout || *fanout < 1 || *fanout > limits::kSshStartsAtOnce) {
    return bad_value(options.shown("ssh-tree", options.ssh_tree) +
                     " is no valid value\nhint: write how many hosts one host reaches, 1 to " +
                     std::to_string(limits::kSshStartsAtOnce) + ", or leave the number out");
  }
  plan.fanout = static_cast<size_t>(*fanout);
  return {};
}

Status read_secret(const ParsedOptions& options, const Environment& environment,
                   const Surroundings& here, LaunchPlan& plan) {
  if (!options.tls_cert.empty()) return {};
  Result<std::shared_ptr<const JobSecret>> secret =
      choose_secret(options.secret_file, std::string(environment.text(kSecretFileVariable)),
                    environment.secret, environment.read_secret);
  if (secret && !*secret) secret = JobSecret::copy_of(here.fresh_secret);
  if (!secret) return secret.error();
  plan.secret = std::move(*secret);
  return {};
}

bool is_user_given(const Host& host) { return host.target != host.name(); }

std::string first_label(const std::string& name) { return name.substr(0, name.find('.')); }

// Compares the domains only if both names have one.
bool is_same_machine(const std::string& name, const std::string& own) {
  if (name == "localhost" || name == "127.0.0.1" || name == "::1" || name == own) return true;
  const bool has_two_domains =
      name.find('.') != std::string::npos && own.find('.') != std::string::npos;
  return !has_two_domains && is_host(own) && first_label(name) == first_label(own) &&
         name.find_first_not_of("0123456789.") != std::string::npos;
}

Status check_local_hosts(const LaunchPlan& plan) {
  const auto is_here = [&](const Host& host) { return is_local(plan, host); };
  const auto first = std::ranges::find_if(plan.hosts, is_here);
  if (first == plan.hosts.end()) return {};
  const auto second = std::find_if(first + 1, plan.hosts.end(), is_here);
  if (second == plan.hosts.end()) return {};
  return bad_value("hosts " + first->target + " and " + second->target +
                   " are both this machine\nhint: give it once with the sum of its slots");
}

}  // namespace

Result<LaunchPlan> make_plan(const LaunchOverSsh& launch, const Environment& environment,
                             const Surroundings& here) {
  const ParsedOptions& options = launch.options;
  LaunchPlan plan;
  Result<std::vector<Host>> hosts = read_hosts(options, environment);
  if (hosts) hosts = select_hosts(std::move(*hosts), options.include, options.exclude);
  if (!hosts) return hosts.error();
  plan.hosts = std::move(*hosts);
  plan.script = launch.tokens.program;
  plan.own_program = here.program;
  plan.program = options.remote_cpprun.empty() ? here.program : options.remote_cpprun;
  plan.directory = here.directory;
  plan.host_name = here.host_name;
  if (options.is_given("nproc-per-node")) plan.nproc_per_node = options.nproc_per_node;
  plan.ssh = text::words(options.ssh);
  if (plan.ssh.empty()) return bad_value("--ssh is empty\nhint: leave it out, or name a program");
  const Status steps[] = {refuse_options(options),
                          read_nnodes(options, plan),
                          check_local_hosts(plan),
                          read_tokens(launch, environment, plan),
                          read_rendezvous(options, here, plan),
                          read_tree(options, plan),
                          read_secret(options, environment, here, plan)};
  for (const Status& ok : steps) {
    if (!ok) return ok.error();
  }
  return plan;
}

bool is_local(const LaunchPlan& plan, const Host& host) {
  return !is_user_given(host) && is_same_machine(host.name(), plan.host_name);
}

std::string endpoint_at(const LaunchPlan& plan, const Host& host, const std::string& first) {
  if (!plan.endpoint.empty()) return plan.endpoint;
  std::string name = first.empty() ? host.name() : first;
  // To the other hosts these names mean themselves.
  if (is_local(plan, host) && is_loopback_host(name)) name = plan.host_name;
  return to_string(Endpoint{name, plan.port});
}

std::vector<std::string> agent_arguments(const LaunchPlan& plan, const Host& host, size_t rank,
                                         size_t count, const std::string& endpoint) {
  Words words = {"--stdin-control"};
  words.insert(words.end(), plan.options.begin(), plan.options.end());
  words.push_back("--nnodes=" + (plan.nnodes.empty() ? std::to_string(count) : plan.nnodes));
  words.push_back("--node-rank=" + std::to_string(rank));
  words.push_back("--rdzv-endpoint=" + endpoint);
  std::string conf = plan.rdzv_conf;
  const bool is_chosen_here = plan.endpoint.empty() && !plan.is_static && !plan.has_etcd;
  if (is_chosen_here && conf.find("is_host") == std::string::npos)
    conf += std::string(conf.empty() ? "" : ",") + "is_host=" + (rank == 0 ? "1" : "0");
  if (!conf.empty()) words.push_back("--rdzv-conf=" + conf);
  if (host.slots) {
    words.push_back("--nproc-per-node=" + std::to_string(*host.slots));
  } else if (!plan.nproc_per_node.empty()) {
    words.push_back("--nproc-per-node=" + plan.nproc_per_node);
  }
  words.push_back("--");
  words.insert(words.end(), plan.script.begin(), plan.script.end());
  return words;
}

Result<std::vector<std::string>> ssh_command(const LaunchPlan& plan, const Host& host,
                                             const Words& arguments) {
  Words remote = {plan.program};
  remote.insert(remote.end(), arguments.begin(), arguments.end());
  std::string command = shell_command(plan.directory, remote);
  if (command.size() > limits::kRemoteCommandBytes) {
    return bad_value("the command line is longer than " +
                     std::to_string(limits::kRemoteCommandBytes) +
                     " bytes, which ssh cannot pass on\nhint: put arguments into a file");
  }
  Words words = plan.ssh;
  const std::string settings[] = {"BatchMode=yes",
                                  "ConnectTimeout=" + std::to_string(limits::kSshConnectSeconds),
                                  "ServerAliveInterval=" + std::to_string(limits::kSshAliveSeconds),
                                  "ServerAliveCountMax=" + std::to_string(limits::kSshAliveCount),
                                  "ClearAllForwardings=yes",
                                  "ControlMaster=no"};
  for (const std::string& setting : settings) {
    words.push_back("-o");
    words.push_back(setting);
  }
  words.insert(words.end(), {"-T", "--", host.target, std::move(command)});
  return words;
}

std::vector<std::string> ssh_config_command(const LaunchPlan& plan, const Host& host) {
  Words words = plan.ssh;
  words.insert(words.end(), {"-G", "--", host.target});
  return words;
}

std::string host_name_of_config(const std::string& output) {
  constexpr std::string_view kKey = "hostname ";
  for (const std::string& line : text::split(output, '\n')) {
    if (!line.starts_with(kKey)) continue;
    const std::string name = line.substr(kKey.size());
    return is_host(name) && !name.starts_with("-") ? name : "";
  }
  return "";
}

}  // namespace cpprun::ssh
