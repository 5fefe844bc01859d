#include "launcher/options/cluster.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "common/endpoint.hpp"
#include "common/exit_code.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "launcher/options/option_table.hpp"
#include "launcher/options/resolve.hpp"
#include "launcher/options/slurm.hpp"

namespace cpprun {
namespace {

// Sets an option that neither a flag nor a PET_ variable has set.
bool fill(ParsedOptions& options, std::string_view name, std::string ParsedOptions::*field,
          std::string value, const std::string& source) {
  if (options.is_given(name)) return false;
  options.*field = std::move(value);
  options.spellings[name] = source;
  return true;
}

bool has_endpoint(const ParsedOptions& options) {
  return !text::strip(options.rdzv_endpoint).empty() || options.is_given("master-addr") ||
         options.is_given("master-port");
}

// The largest number of nodes that --nnodes allows; 0 if it is malformed (resolve() reports that).
int64_t nodes_most(const ParsedOptions& options) {
  return text::parse_int(text::split(options.nnodes, ':').back()).value_or(0);
}
int64_t nodes_least(const ParsedOptions& options) {
  return text::parse_int(text::split(options.nnodes, ':').front()).value_or(0);
}

std::string first_label(std::string_view host) {
  return std::string(host.substr(0, host.find('.')));
}

// Appends "name value" of what was inferred, for the one line about it.
class Inferences {
 public:
  void add(const std::string& text) { parts_.push_back(text); }
  std::string line(const std::string& where) const {
    return parts_.empty() ? "" : where + ": " + text::join(parts_, ", ");
  }

 private:
  std::vector<std::string> parts_;
};

// ---------------------------------------------------------------- Slurm

// An allocation of several nodes in which this process runs alone: the other nodes stay idle.
Status check_forgotten_srun(const ParsedOptions& options, const SlurmJob& job, ClusterView& view) {
  if (job.nodes <= 1) return {};
  const std::string what = "job " + job.id + " has " + std::to_string(job.nodes) +
                           " nodes, but srun did not start this cpprun";
  const std::string cure = "\nhint: write `srun cpprun ...`, which starts one on each node";
  if (nodes_least(options) > 1) {
    return bad_value(what + ", so the other nodes would not join " +
                     options.shown("nnodes", options.nnodes) + cure +
                     " (--cluster=none skips this check)");
  }
  view.warnings.push_back(what + ": it uses one node" + cure);
  return {};
}

// With --ntasks-per-node above 1 srun starts several launchers on a node. They are meant so if the
// user asks for jobs of one node, or for more nodes than the step has.
bool are_launchers_meant(const ParsedOptions& options, const SlurmStep& step) {
  if (!options.is_given("nnodes")) return false;
  const int64_t most = nodes_most(options);
  return most == 1 || most > static_cast<int64_t>(step.nodes.size());
}

std::string surplus_text(const SlurmStep& step) {
  return "srun started " + std::to_string(step.tasks_here) +
         " launchers on this node, and one per node starts all its workers: the others end at "
         "once; "
         "use --ntasks-per-node=1 (with --gpus-per-node, not --gpus-per-task)";
}

// A name that is no node of the step: often `$(hostname)` of the login node.
void check_endpoint(const ParsedOptions& options, const SlurmStep& step, ClusterView& view) {
  if (options.rdzv_backend.starts_with("etcd") || nodes_most(options) < 2) return;
  const std::string given(
      text::strip(options.rdzv_endpoint.empty() ? options.master_addr : options.rdzv_endpoint));
  const Result<Endpoint> endpoint = parse_endpoint(given, uint16_t{1});
  if (given.empty() || !endpoint) return;
  const std::string label = first_label(endpoint->host);
  const bool is_address = endpoint->host.find(':') != std::string::npos ||
                          endpoint->host.find_first_not_of("0123456789.") == std::string::npos;
  // Names of further networks are often the node's with an ending: n1-ib0.
  const auto is_of = [&](const std::string& node) { return label.starts_with(first_label(node)); };
  if (is_address || std::ranges::any_of(step.nodes, is_of)) return;
  view.warnings.push_back("the endpoint " + endpoint->host + " is no node of this step (" +
                          step.nodes.front() + (step.nodes.size() > 1 ? ", ..." : "") +
                          "): without a coordinator there the job waits in vain; leave the option "
                          "out, and the nodes meet on " +
                          step.nodes.front());
}

// Static jobs that name their endpoint lack only the node's rank.
void fill_rank(ParsedOptions& options, const SlurmStep& step, Inferences& inferred) {
  if (options.rdzv_backend != "static" || options.is_given("node-rank")) return;
  options.node_rank = step.node_id;
  options.spellings["node-rank"] = "SLURM_NODEID";
  inferred.add("node rank " + std::to_string(step.node_id));
}

void fill_endpoint(ParsedOptions& options, const SlurmJob& job, const SlurmStep& step,
                   Inferences& inferred, ClusterView& view) {
  if (!options.is_given("rdzv-backend")) options.rdzv_backend = "c10d";
  std::vector<uint16_t> ports = ports_of_step(job, step);
  const Endpoint endpoint{step.nodes.front(), ports.front()};
  options.rdzv_endpoint = to_string(endpoint);
  options.spellings["rdzv-endpoint"] = "SLURM_STEP_NODELIST";
  inferred.add("endpoint " + to_string(endpoint));
  if (options.rdzv_backend == "static") return fill_rank(options, step, inferred);
  view.is_host = step.is_on_first;
  view.further_ports.assign(ports.begin() + 1, ports.end());
}

void fill_rendezvous(ParsedOptions& options, const SlurmJob& job, const SlurmStep& step,
                     Inferences& inferred, ClusterView& view) {
  const std::string count = std::to_string(step.nodes.size());
  if (step.nodes.size() > 1 &&
      fill(options, "nnodes", &ParsedOptions::nnodes, count, "SLURM_STEP_NUM_NODES")) {
    inferred.add(text::count(step.nodes.size(), "node"));
  }
  if (nodes_most(options) < 2) return;
  const bool is_given = has_endpoint(options);
  check_endpoint(options, step, view);
  if (is_given) {
    fill_rank(options, step, inferred);
  } else if (!options.rdzv_backend.starts_with("etcd")) {
    fill_endpoint(options, job, step, inferred, view);
  }
  if (options.rdzv_backend == "static") return;
  view.expected_nodes = static_cast<int>(step.nodes.size());
  const std::string& id = view.config.step_id;
  if (fill(options, "rdzv-id", &ParsedOptions::rdzv_id, id, "SLURM_JOB_ID")) {
    inferred.add("run id " + id);
  }
}

Result<ClusterView> use_slurm(ParsedOptions& options, const SlurmJob& job) {
  ClusterView view;
  ClusterConfig& config = view.config;
  config.kind = ClusterConfig::Kind::Slurm;
  config.job_id = job.id;
  config.restarts = job.restarts;
  config.is_first_node = !job.step || job.step->is_on_first;
  if (!job.step) {
    if (Status status = check_forgotten_srun(options, job, view); !status) return status.error();
    return view;
  }
  const SlurmStep& step = *job.step;
  config.step_id = job.id + "." + std::to_string(step.id) + "." + std::to_string(job.restarts);
  const bool is_shared = step.tasks_here > 1 || step.local_id > 0;
  if (is_shared && !are_launchers_meant(options, step)) {
    view.is_surplus = step.local_id > 0;
    if (step.is_on_first) view.warnings.push_back(surplus_text(step));
    if (view.is_surplus) return view;
  }
  if (!is_shared) {  // else a node may hold several agents of the job
    config.step_nodes = step.nodes;
    config.node_name = step.name;
  }
  Inferences inferred;
  fill_rendezvous(options, job, step, inferred, view);
  const bool has_gpus = job.gpus_here && *job.gpus_here > 0;
  if (has_gpus && !(is_shared && are_launchers_meant(options, step)) &&
      fill(options, "nproc-per-node", &ParsedOptions::nproc_per_node,
           std::to_string(*job.gpus_here), "SLURM_GPUS_ON_NODE")) {
    inferred.add(text::count(static_cast<size_t>(*job.gpus_here), "worker") + " per node");
  }
  view.inferred = inferred.line("Slurm job " + job.id + " step " + std::to_string(step.id));
  return view;
}

// ---------------------------------------------------------------- Kubernetes

struct IndexedPod {
  int64_t index = 0;
  std::string host;    // "train-1"
  std::string job;     // "train": the pods of an Indexed Job are named <job>-<index>
  std::string domain;  // ".train.default.svc.cluster.local"; empty: the pod has no subdomain
};

// The pod's full name on its own line of /etc/hosts, as the kubelet writes it where the pod has a
// subdomain: "10.1.0.7 train-1.train.default.svc.cluster.local train-1". "": there is none.
std::string domain_of(const std::string& host, const Environment& environment) {
  constexpr size_t kHostsBytes = 64 * 1024;
  const std::optional<std::string> hosts = environment.read_file("/etc/hosts", kHostsBytes);
  for (const std::string& line : text::split(hosts.value_or(""), '\n')) {
    std::string words = line;
    std::ranges::replace(words, '\t', ' ');
    for (const std::string& word : text::split(words, ' ')) {
      if (word.size() > host.size() + 1 && word.starts_with(host + "."))
        return word.substr(host.size());
    }
  }
  return "";
}

// Only the first label: with setHostnameAsFQDN the host name is the pod's full name. Container
// runtimes set HOSTNAME; an image without it has the file that the runtime mounts.
std::string pod_host(const Environment& environment) {
  constexpr size_t kNameBytes = 1024;
  const std::string_view name = environment.text("HOSTNAME");
  if (!name.empty()) return first_label(name);
  const std::string file = environment.read_file("/etc/hostname", kNameBytes).value_or("");
  return first_label(text::strip(file));
}

std::optional<IndexedPod> read_pod(const Environment& environment) {
  const std::string_view word = environment.text("JOB_COMPLETION_INDEX");
  const std::optional<int64_t> index = text::parse_int(word);
  if (!index || *index < 0) return std::nullopt;
  IndexedPod pod{*index, pod_host(environment), "", ""};
  const std::string ending = "-" + std::string(word);
  if (pod.host.size() <= ending.size() || !pod.host.ends_with(ending)) return std::nullopt;
  pod.job = pod.host.substr(0, pod.host.size() - ending.size());
  pod.domain = domain_of(pod.host, environment);
  return pod;
}

// The uid of the Job, which the manifests set by the downward API. It becomes part of the run id
// and of a file's name.
Result<std::string> read_job_uid(const Environment& environment) {
  constexpr size_t kUidBytes = 63;
  const std::string uid(environment.text("CPPRUN_JOB_UID"));
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
  };
  if (uid.size() <= kUidBytes && std::ranges::all_of(uid, is_allowed)) return uid;
  return bad_value(
      "CPPRUN_JOB_UID is not the uid of a Job\nhint: the manifest takes it from the label "
      "batch.kubernetes.io/controller-uid");
}

// The Kubernetes node of the pod, which the manifests set by the downward API. It becomes part of
// this node's name, because the Job controller gives a new pod on another machine the host name of
// the old one.
Result<std::string> read_machine(const Environment& environment) {
  constexpr size_t kDomainNameBytes = 253;
  const std::string machine(environment.text("CPPRUN_NODE_NAME"));
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '.';
  };
  if (machine.size() <= kDomainNameBytes && std::ranges::all_of(machine, is_allowed)) {
    return machine;
  }
  return bad_value(
      "CPPRUN_NODE_NAME is not the name of a Kubernetes node\nhint: the manifest takes it from the "
      "field spec.nodeName");
}

// Kubeflow Trainer sets PET_MASTER_ADDR, PET_MASTER_PORT and PET_NODE_RANK for static jobs. A job
// that asks for c10d meets at pod 0 all the same, and ranks follow from the nodes' names.
void drop_static_variables(ParsedOptions& options) {
  const auto is_from_environment = [&](const std::string& name) {
    const auto found = options.spellings.find(name);
    return found != options.spellings.end() && found->second.starts_with(kVariablePrefix);
  };
  for (const std::string name : {"master-addr", "master-port", "node-rank"}) {
    if (!is_from_environment(name)) continue;
    if (name == "master-addr") options.master_addr.clear();
    if (name == "master-port") options.master_port.reset();
    if (name == "node-rank") options.node_rank.reset();
    options.spellings.erase(name);
  }
}

void warn_of_alone_pod(const ParsedOptions& options, const IndexedPod& pod, ClusterView& view) {
  if (pod.index == 0 || options.is_given("nnodes")) return;
  view.warnings.push_back("this pod has completion index " + std::to_string(pod.index) +
                          ", but --nnodes is not given, so each pod of job " + pod.job +
                          " trains by itself; set PET_NNODES to the Job's completions, or "
                          "--nnodes=1 if that is meant");
}

void fill_pod_endpoint(ParsedOptions& options, const IndexedPod& pod, Inferences& inferred,
                       ClusterView& view) {
  const Endpoint endpoint{pod.job + "-0" + pod.domain, kRendezvousPort};
  options.rdzv_endpoint = to_string(endpoint);
  options.spellings["rdzv-endpoint"] = "HOSTNAME";
  inferred.add("endpoint " + to_string(endpoint));
  if (!pod.domain.empty()) return;
  view.warnings.push_back(
      "/etc/hosts has no full name of this pod, so the pods may not find each other: set subdomain "
      "in the pod's template to the name of a headless Service that selects the pods");
}

// A Job's pods with completionMode Indexed; pod 0 hosts.
Result<ClusterView> use_kubernetes(ParsedOptions& options, const Environment& environment) {
  ClusterView view;
  view.config.kind = ClusterConfig::Kind::Kubernetes;
  Result<std::string> machine = read_machine(environment);
  if (!machine) return machine.error();
  view.config.machine = std::move(*machine);
  const std::optional<IndexedPod> pod = read_pod(environment);
  view.config.is_first_node = !pod || pod->index == 0;
  if (!pod) return view;
  warn_of_alone_pod(options, *pod, view);
  const bool is_static = options.rdzv_backend == "static" && options.is_given("rdzv-backend");
  if (options.rdzv_backend == "c10d" || options.rdzv_backend == "cpprun")
    drop_static_variables(options);
  const bool can_infer = nodes_most(options) > 1 && !has_endpoint(options) &&
                         !options.rdzv_backend.starts_with("etcd");
  if (!can_infer) return view;
  Inferences inferred;
  if (!options.is_given("rdzv-backend")) options.rdzv_backend = "c10d";
  fill_pod_endpoint(options, *pod, inferred, view);
  if (is_static) {
    if (!options.is_given("node-rank")) {
      options.node_rank = pod->index;
      options.spellings["node-rank"] = "JOB_COMPLETION_INDEX";
      inferred.add("node rank " + std::to_string(pod->index));
    }
  } else {
    const Result<std::string> uid = read_job_uid(environment);
    if (!uid) return uid.error();
    view.config.job_id = *uid;
    view.is_host = pod->index == 0;
    constexpr size_t kShownUid = 8;
    const std::string id = pod->job + (uid->empty() ? "" : "." + uid->substr(0, kShownUid));
    if (fill(options, "rdzv-id", &ParsedOptions::rdzv_id, id, "HOSTNAME"))
      inferred.add("run id " + id);
  }
  view.inferred = inferred.line("Kubernetes job " + pod->job);
  return view;
}

}  // namespace

Result<ClusterView> fill_from_cluster(ParsedOptions& options, const Environment& environment) {
  const std::string& word = options.cluster;
  if (word != "auto" && word != "slurm" && word != "kubernetes" && word != "none")
    return bad_value(options.shown("cluster", word) +
                     " is no valid value\nhint: write auto, slurm, kubernetes or none");
  if (word == "none" || options.standalone) return ClusterView{};
  if (word == "auto" || word == "slurm") {
    const Result<std::optional<SlurmJob>> job = read_slurm_job(environment);
    if (!job) return job.error();
    if (*job) return use_slurm(options, **job);
    if (word == "slurm") {
      return bad_value(
          options.shown("cluster", word) +
          ": SLURM_JOB_ID is not set, so this is no Slurm job\nhint: leave the option out");
    }
  }
  const bool is_pod = environment.variable("KUBERNETES_SERVICE_HOST").has_value();
  if (word == "kubernetes" || is_pod) return use_kubernetes(options, environment);
  return ClusterView{};
}

bool wants_requeue(const ClusterConfig& cluster, int exit_code) {
  const bool is_stopped = exit_code == kStoppedResumable || exit_code == kSignalBase + SIGTERM;
  return cluster.kind == ClusterConfig::Kind::Slurm && cluster.is_first_node && is_stopped &&
         cluster.requeues_max && cluster.restarts < *cluster.requeues_max;
}

// Slurm shows COMPLETING in place of the state until all processes have gone; a job at its time
// limit then has that as its reason.
bool is_ended_by_slurm(const std::string& shown_job) {
  const auto has_field = [&](const std::string& field) {
    const size_t at = shown_job.find(field);
    if (at == std::string::npos) return false;
    const size_t end = at + field.size();
    return end == shown_job.size() || shown_job[end] == ' ' || shown_job[end] == '\n';
  };
  return has_field(" JobState=CANCELLED") ||
         (has_field(" JobState=COMPLETING") && has_field(" Reason=None"));
}

std::string exclusion_list(const std::string& shown_job, const std::vector<std::string>& hosts) {
  constexpr std::string_view kField = "ExcNodeList=";
  std::vector<std::string> all;
  if (const size_t at = shown_job.find(kField); at != std::string::npos) {
    const size_t begin = at + kField.size();
    const std::string known =
        shown_job.substr(begin, shown_job.find_first_of(" \n", begin) - begin);
    if (!known.empty() && known != "(null)") all.push_back(known);
  }
  for (const std::string& host : hosts) all.push_back(host.substr(0, host.find('.')));
  return text::join(all, ",");
}

}  // namespace cpprun
