// AgentConfig: the complete, checked settings of one run. The launcher builds it from flags and
// environment. The daemon takes its settings from here only, and has no defaults.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/faults/plan.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/regroup.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/store.hpp"
#include "common/straggler_policy.hpp"
#include "common/time.hpp"

namespace cpprun {

class JobSecret;
class JobTls;

enum class Backend { Static, Cpprun, Etcd };  // c10d is an alias of Cpprun, etcd-v2 of Etcd

// torchrun's name of the backend.
inline const char* name_of(Backend backend) {
  return backend == Backend::Static ? "static" : backend == Backend::Etcd ? "etcd" : "c10d";
}
enum class WorkerStore { Rank0, Agent };  // serves MASTER_PORT: docs/explanation/supervision.md
// The argument before the script's own: none, --local-rank=N or --local_rank=N.
enum class PassLocalRank { No, Dash, Underscore };

// Values of --rdzv-conf, under the rendezvous protocol's names.
struct RendezvousConf {
  Duration join_timeout = limits::kJoinTimeout;  // Static: key `timeout`, default kStaticTimeout.
  // Unset: kLastCall after the last node joined, at most kLastCallMax
  std::optional<Duration> last_call;
  Duration heartbeat = limits::kHeartbeat;  // keep_alive_interval
  Duration lease = limits::kNodeLease;      // keep_alive_interval x keep_alive_max_attempt
  Duration scale_up_interval = limits::kScaleUpInterval;
  std::optional<bool> is_host;
  size_t store_value_bytes = limits::kStoreValueBytes;  // own key: store_value_limit_mb
  // Own key: store_memory_mb. Unset: a part of the usable memory.
  std::optional<size_t> store_memory_bytes;
};

// --rdzv-backend=etcd: the etcd cluster that elects the coordinator, and the credentials for it.
struct EtcdConfig {
  std::vector<Endpoint> endpoints;  // of etcd's members, at least one
  std::string prefix;               // of all keys: "", or "/.../"
  bool is_https = false;
  std::string ca_file;    // trusted certificates; "": the machine's own
  std::string cert_file;  // client certificate, with key_file; "": none
  std::string key_file;
  std::string user;      // "": none
  std::string password;  // never logged, never passed on to workers
};

// --secret-file, or --tls-cert and its like: what proves that a peer belongs to the job.
struct TlsConfig {
  std::shared_ptr<const JobSecret> secret;  // null: none
  // Slurm: the file that the first node makes, and that all nodes read the secret from; "": none.
  std::string step_secret_file;
  std::string cert_file;  // with key_file and ca_file; "": none
  std::string key_file;
  std::string ca_file;
};

struct RendezvousConfig {
  Backend backend = Backend::Cpprun;
  bool is_standalone = false;  // one node, with a server of its own on a free loopback port
  // Address of the coordinator. Static with several nodes, or with the agent's store:
  // master_addr:master_port. Etcd: the first member of etcd.
  Endpoint endpoint;
  // The hosting node listens at the first free one of endpoint.port and these, and leads no other
  // job there; the other nodes try them in this order.
  std::vector<uint16_t> further_ports;
  int expected_nodes = 0;  // agents that the scheduler starts; 0: unknown
  EtcdConfig etcd;         // Etcd only
  std::string run_id;
  bool has_default_run_id = false;  // the user gave no --rdzv-id, so other jobs may use the same
  int min_nodes = 1;
  int max_nodes = 1;
  std::optional<int> node_rank;  // Static: the group rank; otherwise a preference
  TlsConfig tls;
  // Made of `tls` by the launcher, where the job may span nodes. Null: connections are plain.
  std::shared_ptr<const JobTls> job_tls;
  // The address at which other nodes reach this one; empty: the agent finds it.
  std::string local_addr;
  // Further names by which HTTP clients may ask the coordinator here.
  std::vector<std::string> allowed_hosts;
  RendezvousConf conf;
  // Between two log lines about a long wait.
  Duration wait_reminder_interval = limits::kWaitReminderInterval;
  WorkerStore worker_store = WorkerStore::Rank0;
  bool is_store_for_members = false;  // the agent's store refuses clients from other addresses
  // Set by the user (Static); unset: the address of group rank 0.
  std::optional<std::string> master_addr;
  // Set by the user (Static on one node); unset: a new port for each round.
  std::optional<uint16_t> master_port;

  // The coordinator and the workers' store share MASTER_PORT.
  bool is_store_at_endpoint() const {
    return worker_store == WorkerStore::Agent && backend == Backend::Static && endpoint.port != 0;
  }
};

// Bit set of --redirects / --tee: 1 stdout, 2 stderr.
struct StreamBits {
  uint8_t bits = 0;
  bool has_out() const { return (bits & 1) != 0; }
  bool has_err() const { return (bits & 2) != 0; }
};

struct LogConfig {
  // Empty: a temporary folder, see LogFolder::leave(). "/dev/null": no files at all.
  std::string dir;
  std::vector<StreamBits> redirects;                // by local rank, always nproc entries
  std::vector<StreamBits> tee;                      // by local rank, always nproc entries
  std::optional<std::set<int>> local_ranks_filter;  // only these local ranks reach the console
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  // May hold ${role_name} ${local_rank} ${rank} ${hostname}; unset: "[${role_name}${local_rank}]:".
  std::optional<std::string> prefix_template;
};

// --preload: docs/how-to/preload.md.
struct PreloadConfig {
  // Unused: the option is given, but the workers are no Python programs.
  enum class Mode { Off, Auto, List, Unused } mode = Mode::Off;
  std::vector<std::string> modules;  // List
};

struct WorkerConfig {
  int nproc = 1;
  std::string role = "default";
  // The executable; for Python also its options and the script or module. Never empty. The daemon
  // replaces ${local_rank} in all but the first; "$$" gives "$".
  std::vector<std::string> program;
  std::vector<std::string> arguments;
  std::string title;  // the job's name in summaries: the script, else the program
  PassLocalRank pass_local_rank = PassLocalRank::No;
  bool is_virtual_local_rank = false;
  bool tunes_malloc = false;           // sets kMallocVariables that the environment lacks
  std::vector<std::vector<int>> cpus;  // for each local rank; empty: all CPUs
  // To 1, with a log line: nproc > 1 and the user set neither variable nor option
  bool set_omp_num_threads = false;
  int omp_threads = 0;  // --omp-threads; 0: not given
  PreloadConfig preload;
};

// --hang-timeout: agent/core/hangs/hang_watch.hpp.
struct HangConfig {
  enum class Mode { Off, Auto, Fixed } mode = Mode::Auto;
  Duration limit{};  // Fixed
};

// --node-check: docs/how-to/bad-nodes.md.
struct NodeCheckConfig {
  std::vector<std::string> command;  // with its arguments; empty: no check
  Duration timeout = limits::kNodeCheckTimeout;
};

struct FaultConfig {
  std::optional<faults::Plan> plan;  // with all random choices already made
  std::string junit;                 // --junit; empty: none
  std::string report_file;           // the fault report as JSON, for cpprunctl chaos; empty: none
};

// The scheduler that started this process, and what it knows about the job.
struct ClusterConfig {
  enum class Kind { None, Slurm, Kubernetes } kind = Kind::None;
  std::string job_id;   // Slurm: of the job; Kubernetes: the Job's uid, if it is known
  std::string step_id;  // Slurm: of the step, with job and restart: "41.0.0"; "": no step
  std::vector<std::string> step_nodes;  // Slurm: in their order
  std::string node_name;                // Slurm: of this node in step_nodes
  std::string machine;                  // Kubernetes: on which the pod runs, if it is known
  int64_t restarts = 0;                 // Slurm: how often it has requeued the job
  bool is_first_node = true;  // the node that hosts the coordinator and asks for the requeue
  // --requeue: up to this number of requeues; unset: not asked for.
  std::optional<int64_t> requeues_max;
  std::vector<int> stop_signals;  // --preempt-signal: the agent acts as if they were SIGTERM
};

// Times of the launcher before the agent's start.
struct StartTimes {
  Duration exec{};    // processor time until main(): exec, loading, static initialisers
  Instant main_at;    // CLOCK_BOOTTIME, like the others
  Instant options;    // options parsed
  Instant prepared;   // reaper process, log folder, fixed port
  Instant listening;  // the coordinator listens, or runs on another node
};

// --failure-format. Auto: Summary on a terminal, else Both.
enum class FailureFormat { Auto, Summary, Torchrun, Both };

struct AgentConfig {
  RendezvousConfig rendezvous;
  WorkerConfig workers;
  LogConfig logs;
  int max_restarts = 0;
  std::optional<int> max_hangs;        // --max-hangs; unset: as many as max_restarts
  std::optional<int> max_node_losses;  // --max-node-losses; unset: any number
  Duration restart_backoff{};          // --restart-backoff; zero: off
  int startup_failures = 0;            // as JobSpec::startup_failures; 0: off
  int exclude_after = 0;               // as JobSpec::exclude_after; 0: off
  StragglerPolicy stragglers = StragglerPolicy::Report;
  NodeCheckConfig node_check;
  int64_t link_check_bytes = 0;                        // as JobSpec::link_check_bytes; 0: off
  std::vector<std::string> exclude_hook;               // its first arguments; empty: none
  std::string state_dir;                               // for later jobs; empty: nothing is kept
  bool stops_on_repeat = false;                        // --on-repeat=stop
  Duration stop_grace = limits::kStopGrace;            // from SIGTERM to SIGKILL, at every stop
  Duration regroup_timeout = limits::kRegroupTimeout;  // zero: no worker regroups
  HangConfig hangs;
  std::optional<int64_t> debug_rank;    // this global rank waits for a debugger
  std::string timer_file;               // FIFO of torch's FileTimerServer; empty: none
  std::optional<uint16_t> health_port;  // of the health server; unset: no server
  std::vector<int> signals;             // that the launcher catches and forwards to the workers
  std::string signals_text;  // as the user wrote them, for TORCHELASTIC_SIGNALS_TO_HANDLE
  std::vector<std::string> environment;  // the launcher's own, "NAME=value"
  std::string temporary_dir;             // TMPDIR, else /tmp
  std::string own_error_file;  // TORCHELASTIC_ERROR_FILE of the launcher itself; "" = none
  std::string event_log_handler = "null";  // null or console
  std::string snapshot_dir;                // --snapshot-dir; empty: not given
  bool keeps_replicas = false;             // --snapshot-replicas=1
  FaultConfig faults;
  FailureFormat failure_format = FailureFormat::Auto;
  bool shows_timing = false;  // --timing
  std::string notify_url;     // gets the failure summary; secret; empty: none
  // The agents of all nodes print to one console, so that only one prints the failure summary.
  bool shares_console = false;
  ClusterConfig cluster;
};

}  // namespace cpprun
