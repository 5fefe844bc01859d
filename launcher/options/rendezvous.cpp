// Options of the rendezvous: backend, endpoint, job id, number of nodes.
#include <algorithm>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "launcher/options/rdzv_conf.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

constexpr uint16_t kStaticPort = 29500;  // the static backend's default

Status read_nnodes(const ParsedOptions& options, RendezvousConfig& out) {
  std::string what = options.shown("nnodes", options.nnodes);
  std::string cure = "\nhint: write N or MIN:MAX, such as " + options.shown("nnodes", "2") +
                     " or " + options.shown("nnodes", "1:4");
  std::vector<std::string> parts = text::split(options.nnodes, ':');
  if (parts.size() > 2)
    return bad_value(what + " has " + std::to_string(parts.size()) + " parts" + cure);
  std::optional<int64_t> min = text::parse_int(parts.front());
  std::optional<int64_t> max = text::parse_int(parts.back());
  if (!min || !max) return bad_value(what + " is not a number of nodes" + cure);
  if (*min < 1) return bad_value(what + ": a job has at least one node" + cure);
  if (*min > *max) return bad_value(what + ": the minimum is above the maximum" + cure);
  if (*max > limits::kNodesPerJob) {
    return bad_value(what + ": a job has at most " + std::to_string(limits::kNodesPerJob) +
                     " nodes");
  }
  out.min_nodes = static_cast<int>(*min);
  out.max_nodes = static_cast<int>(*max);
  return {};
}

// --job-name is another name of --rdzv-id.
Status check_job_name(const ParsedOptions& options) {
  const bool has_both = options.is_given("job-name") && options.is_given("rdzv-id");
  if (!has_both || options.job_name == options.rdzv_id || options.standalone) return {};
  return bad_value(options.shown("job-name", options.job_name) + " and " +
                   options.shown("rdzv-id", options.rdzv_id) +
                   " give the job two names\nhint: leave one out");
}

Status read_names(const ParsedOptions& options, RendezvousConfig& out) {
  const bool has_job_name = options.is_given("job-name");
  const std::string& id = has_job_name ? options.job_name : options.rdzv_id;
  const std::string option = has_job_name ? "--job-name" : "--rdzv-id";
  if (Status status = check_job_name(options); !status) return status;
  if (id.size() > limits::kNameBytes) {
    return bad_value(option + " is longer than " + std::to_string(limits::kNameBytes) + " bytes");
  }
  if (id.empty())
    return bad_value(option + " is empty\nhint: give the job a name, the same on each node");
  if (id.find('/') != std::string::npos) {
    return bad_value(options.shown(option.substr(2), id) +
                     ": the log folder is named after it, so it can't have a '/'");
  }
  if (options.local_addr.size() > limits::kNameBytes)
    return bad_value("--local-addr is too long to be an address");
  out.run_id = id;
  out.has_default_run_id = !has_job_name && !options.is_given("rdzv-id");
  if (options.local_addr.empty()) return {};
  Result<Endpoint> address = parse_endpoint(options.local_addr, uint16_t{0});
  if (!address || address->port != 0) {
    return bad_value(options.shown("local-addr", options.local_addr) +
                     " is no address\nhint: write a host name, 10.0.0.5 or fe80::1");
  }
  out.local_addr = address->host;
  return {};
}

Status read_allowed_hosts(const ParsedOptions& options, RendezvousConfig& out) {
  if (text::strip(options.allowed_host).empty()) return {};
  for (const std::string& entry : text::split(options.allowed_host, ',')) {
    const std::string name(text::strip(entry));
    const Result<Endpoint> host = parse_endpoint(name, uint16_t{0});
    if (!host || host->port != 0) {
      return bad_value(
          options.shown("allowed-host", options.allowed_host) +
          " is no valid value\nhint: write host names without a port, such as train.example.com");
    }
    out.allowed_hosts.push_back(host->host);
  }
  return {};
}

// torch 2.12's rule: a plain launch on one node needs no fixed port.
bool is_standalone(const ParsedOptions& options, const RendezvousConfig& config) {
  if (options.standalone) return true;
  return options.rdzv_backend == "static" && text::strip(options.rdzv_endpoint).empty() &&
         !options.master_port && config.max_nodes == 1;
}

// Standalone is one node, so --nnodes with more is an error; torchrun waits for the other nodes
// until its join timeout.
Status use_standalone(const ParsedOptions& options, const Environment& environment,
                      Launch& launch) {
  RendezvousConfig& config = launch.config.rendezvous;
  if (config.min_nodes > 1) {
    return bad_value("--standalone is one node by itself, but " +
                     options.shown("nnodes", options.nnodes) +
                     " wants more\nhint: leave one of the two out (several nodes meet by "
                     "--rdzv-backend=c10d --rdzv-endpoint=HOST:PORT)");
  }
  config.backend = Backend::Cpprun;
  config.is_standalone = true;
  config.endpoint = Endpoint{"127.0.0.1", 0};
  const bool has_name =
      options.is_given("job-name") || (!options.standalone && options.is_given("rdzv-id"));
  if (!has_name) config.run_id = environment.make_uuid();
  if (options.standalone && options.is_given("rdzv-id")) {
    launch.notes.push_back(options.shown("rdzv-id", options.rdzv_id) +
                           " is ignored with --standalone, as in torchrun; --job-name=" +
                           options.rdzv_id + " names the job");
  }
  config.has_default_run_id = false;
  config.min_nodes = config.max_nodes = 1;
  if (options.node_rank.value_or(0) != 0) {
    launch.warnings.push_back(options.shown("node-rank", *options.node_rank) +
                              " is ignored: this job has one node" +
                              (options.standalone ? "" : "; for several add --nnodes=N"));
  }
  return {};
}

// Returns [::1] as ::1; the port is never part of this option.
Result<std::string> read_master_addr(const ParsedOptions& options) {
  std::string addr(text::strip(options.master_addr));
  if (addr.empty()) return std::string("127.0.0.1");
  bool has_brackets = addr.front() == '[';
  bool has_port = !has_brackets && std::count(addr.begin(), addr.end(), ':') == 1;
  // In brackets and with a port added, only a valid host parses.
  Result<Endpoint> parsed = parse_endpoint((has_brackets ? addr : "[" + addr + "]") + ":1", {});
  if (parsed && !has_port) return parsed->host;
  return bad_value(
      options.shown("master-addr", options.master_addr) +
      " is no host\nhint: write a name or an address, and the port as --master-port=PORT");
}

Result<Endpoint> read_rdzv_endpoint(const ParsedOptions& options,
                                    std::optional<uint16_t> default_port) {
  Result<Endpoint> endpoint = parse_endpoint(options.rdzv_endpoint, default_port);
  if (endpoint) return endpoint;
  return bad_value(options.shown("rdzv-endpoint", options.rdzv_endpoint) + ": " +
                   endpoint.error().text);
}

Result<Endpoint> read_static_endpoint(const ParsedOptions& options) {
  if (!text::strip(options.rdzv_endpoint).empty()) return read_rdzv_endpoint(options, std::nullopt);
  Result<std::string> host = read_master_addr(options);
  if (!host) return host.error();
  int64_t port = options.master_port.value_or(kStaticPort);
  if (port < 0 || port > 65535) {
    return bad_value(options.shown("master-port", port) + ": a port is a number from 0 to 65535");
  }
  return Endpoint{std::move(*host), static_cast<uint16_t>(port)};
}

Status use_static(const ParsedOptions& options, Launch& launch) {
  RendezvousConfig& config = launch.config.rendezvous;
  config.backend = Backend::Static;
  Result<Endpoint> endpoint = read_static_endpoint(options);
  if (!endpoint) return endpoint.error();
  int64_t rank = options.node_rank.value_or(0);
  if (rank < 0 || rank >= config.max_nodes) {
    return bad_value(options.shown("node-rank", rank) + ": with " +
                     text::count(static_cast<size_t>(config.max_nodes), "node") +
                     " (--nnodes) ranks go from 0 to " + std::to_string(config.max_nodes - 1));
  }
  if (config.min_nodes < config.max_nodes) {
    launch.warnings.push_back("the static backend waits for all " +
                              std::to_string(config.max_nodes) +
                              " nodes; for an elastic job use --rdzv-backend=c10d");
  }
  config.min_nodes = config.max_nodes;
  config.node_rank = static_cast<int>(rank);
  config.master_addr = endpoint->host;
  const bool is_alone = config.max_nodes == 1;
  if (is_alone && options.worker_store != "agent") {
    config.is_standalone = true;
    config.endpoint = Endpoint{"127.0.0.1", 0};
    if (endpoint->port != 0) config.master_port = endpoint->port;
    return {};
  }
  if (endpoint->port == 0 && !is_alone) {
    return bad_value(
        "port 0 means any free port, which the other nodes could not know\nhint: give the same "
        "port to "
        "each node");
  }
  config.endpoint = std::move(*endpoint);
  const bool has_address =
      !text::strip(options.rdzv_endpoint).empty() || !text::strip(options.master_addr).empty();
  if (!is_alone && !has_address) {
    launch.warnings.push_back("without --master-addr nodes meet at " + to_string(config.endpoint) +
                              ", so only those on this machine");
  }
  return {};
}

Status read_wished_rank(const ParsedOptions& options, Launch& launch) {
  if (!options.node_rank) return {};
  if (*options.node_rank < 0 || *options.node_rank > limits::kNodesPerJob) {
    return bad_value(options.shown("node-rank", *options.node_rank) + ": ranks go from 0 on");
  }
  launch.config.rendezvous.node_rank = static_cast<int>(*options.node_rank);
  if (options.stdin_control) return {};  // the launcher has numbered the hosts, not the user
  launch.warnings.push_back(options.shown("node-rank", *options.node_rank) +
                            " is only a wish with --rdzv-backend=" + options.rdzv_backend +
                            ": a node keeps the rank that it had in the round before");
  return {};
}

Status use_meeting(const ParsedOptions& options, Launch& launch) {
  RendezvousConfig& config = launch.config.rendezvous;
  config.backend = Backend::Cpprun;
  Result<Endpoint> endpoint = read_rdzv_endpoint(options, kRendezvousPort);
  if (!endpoint) return endpoint.error();
  if (endpoint->port == 0 && config.min_nodes > 1) {
    return bad_value(
        options.shown("rdzv-endpoint", options.rdzv_endpoint) +
        ": port 0 means any free port, which the other nodes could not know\nhint: give a port");
  }
  config.endpoint = std::move(*endpoint);
  std::string backend = "--rdzv-backend=" + options.rdzv_backend;
  if (options.is_given("master-addr") || options.is_given("master-port")) {
    launch.warnings.push_back(
        "--master-addr and --master-port are only for static jobs and are ignored with " + backend +
        "; nodes meet at " + to_string(config.endpoint));
  } else if (text::strip(options.rdzv_endpoint).empty() && config.max_nodes > 1) {
    launch.warnings.push_back("without --rdzv-endpoint nodes meet at " +
                              to_string(config.endpoint) + ", so only those on this machine");
  }
  return read_wished_rank(options, launch);
}

Status use_etcd(const ParsedOptions& options, const KeyValues& conf, const Environment& environment,
                Launch& launch) {
  RendezvousConfig& config = launch.config.rendezvous;
  config.backend = Backend::Etcd;
  Result<EtcdConfig> etcd = read_etcd(options, conf, environment);
  if (!etcd) return etcd.error();
  config.etcd = std::move(*etcd);
  config.endpoint = config.etcd.endpoints.front();
  if (options.is_given("master-addr") || options.is_given("master-port")) {
    launch.warnings.push_back(
        "--master-addr and --master-port are only for static jobs and are ignored with etcd");
  }
  if (options.rdzv_backend == "etcd-v2") {
    launch.warnings.push_back(
        "--rdzv-backend=etcd-v2 means etcd's v3 interface here: etcd has given v2 up");
  }
  return read_wished_rank(options, launch);
}

Error refused_backend(const ParsedOptions& options) {
  return bad_value(
      options.shown("rdzv-backend", options.rdzv_backend) +
      " is not known\nhint: accepted are static, c10d, cpprun (another name of c10d) and etcd");
}

Status read_worker_store(const ParsedOptions& options, RendezvousConfig& config) {
  bool is_static_many = config.backend == Backend::Static && config.max_nodes > 1;
  config.worker_store = is_static_many ? WorkerStore::Agent : WorkerStore::Rank0;
  const std::string& token = options.worker_store;
  if (token.empty()) return {};
  std::string what = options.shown("worker-store", token);
  if (token != "rank0" && token != "agent")
    return bad_value(what + " is no valid value\nhint: write rank0 or agent");
  if (token == "rank0" && is_static_many) {
    return bad_value(what +
                     ": the nodes of a static job know one address only, and the agents already "
                     "meet there\nhint: use --rdzv-backend=c10d, or leave it out");
  }
  config.worker_store = token == "agent" ? WorkerStore::Agent : WorkerStore::Rank0;
  return {};
}

// Worker 0's own store admits every client, whatever the value of this option.
Status read_store_allow(const ParsedOptions& options, RendezvousConfig& config) {
  config.is_store_for_members = options.store_allow == "members";
  const std::string what = options.shown("store-allow", options.store_allow);
  if (options.store_allow != "all" && !config.is_store_for_members) {
    return bad_value(what + " is no valid value\nhint: write all or members");
  }
  if (!config.is_store_for_members || config.worker_store == WorkerStore::Agent) return {};
  return bad_value(what + " needs --worker-store=agent: otherwise worker 0 serves the store");
}

// Spares are nodes beyond the maximum of a round, which the job keeps because it has a run id.
Status keep_spares(const ParsedOptions& options, RendezvousConfig& config) {
  if (options.spares == 0) return {};
  const std::string what = options.shown("spares", options.spares);
  if (options.spares < 0)
    return bad_value(what + " is no valid value\nhint: write how many nodes are spares, or 0");
  if (config.is_standalone || config.backend == Backend::Static) {
    return bad_value(what + " needs --rdzv-backend=c10d or etcd");
  }
  if (options.spares >= config.max_nodes) {
    return bad_value(what + " leaves no node of " + options.shown("nnodes", options.nnodes) +
                     " for the round");
  }
  if (config.has_default_run_id) {
    return bad_value(what + " needs --rdzv-id: without it a full job refuses further agents");
  }
  config.max_nodes -= static_cast<int>(options.spares);
  config.min_nodes = std::min(config.min_nodes, config.max_nodes);
  return {};
}

Status use_backend(const ParsedOptions& options, const KeyValues& conf,
                   const Environment& environment, Launch& launch) {
  if (is_standalone(options, launch.config.rendezvous)) {
    return use_standalone(options, environment, launch);
  }
  if (options.rdzv_backend == "static") return use_static(options, launch);
  if (options.rdzv_backend == "c10d" || options.rdzv_backend == "cpprun")
    return use_meeting(options, launch);
  if (options.rdzv_backend == "etcd" || options.rdzv_backend == "etcd-v2")
    return use_etcd(options, conf, environment, launch);
  return refused_backend(options);
}

}  // namespace

Status resolve_rendezvous(const ParsedOptions& options, const Environment& environment,
                          Launch& launch) {
  RendezvousConfig& config = launch.config.rendezvous;
  if (Status status = read_nnodes(options, config); !status) return status;
  if (Status status = read_names(options, config); !status) return status;
  if (Status status = read_allowed_hosts(options, config); !status) return status;
  Result<KeyValues> values = split_rdzv_conf(options.rdzv_conf);
  if (!values) return values.error();
  if (Status status = check_store_type(*values); !status) return status;
  if (Status status = use_backend(options, *values, environment, launch); !status) return status;
  if (Status status = keep_spares(options, config); !status) return status;
  Result<RendezvousConf> conf = read_rdzv_conf(*values, config.backend, launch.warnings);
  if (!conf) return conf.error();
  config.conf = *conf;
  if (auto minute = text::parse_double(environment.text("CPPRUN_TEST_MINUTE")); minute) {
    config.wait_reminder_interval =
        std::max(seconds(*minute), Duration(std::chrono::milliseconds(100)));
  }
  if (Status status = read_worker_store(options, config); !status) return status;
  return read_store_allow(options, config);
}

}  // namespace cpprun
