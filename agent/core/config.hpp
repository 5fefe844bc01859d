// AgentConfig: everything that one run of the launcher was asked to do, checked and resolved. The
// launcher makes it from flags and environment; the daemon reads it and nothing else (no getenv, no
// defaults of its own).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/faults/plan.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/store.hpp"
#include "common/time.hpp"

namespace cpprun {

enum class Backend { Static, Cpprun, Etcd };  // c10d is another name of Cpprun, etcd-v2 of Etcd
// As torchrun calls it.
inline const char* name_of(Backend backend) {
  return backend == Backend::Static ? "static" : backend == Backend::Etcd ? "etcd" : "c10d";
}
enum class WorkerStore { Rank0, Agent };  // who serves MASTER_PORT: docs/supervision.md
enum class PassLocalRank {
  No,
  Dash,
  Underscore
};  // --local-rank=N / --local_rank=N before the script's arguments

// Values of --rdzv-conf; times as the rendezvous protocol names them.
struct RendezvousConf {
  Duration join_timeout =
      limits::kJoinTimeout;                 // for Static: key `timeout`, default kStaticTimeout
  std::optional<Duration> last_call;        // unset: kLastCall of quiet, at most kLastCallMax
  Duration heartbeat = limits::kHeartbeat;  // keep_alive_interval
  Duration lease = limits::kNodeLease;      // keep_alive_interval x keep_alive_max_attempt
  Duration scale_up_interval = limits::kScaleUpInterval;
  std::optional<bool> is_host;
  size_t store_value_bytes = limits::kStoreValueBytes;  // own key: store_value_limit_mb
};

// --rdzv-backend=etcd: whom the nodes ask who leads, and as whom.
struct EtcdConfig {
  std::vector<Endpoint> endpoints;  // members of etcd, at least one
  std::string prefix;               // before all keys: "", or "/.../"
  bool is_https = false;
  std::string ca_file;    // whom to believe; "": whom the machine believes
  std::string cert_file;  // who we are, with its key; "": nobody asks
  std::string key_file;
  std::string user;      // "": none
  std::string password;  // never shown, never passed on to workers
};

struct RendezvousConfig {
  Backend backend = Backend::Cpprun;
  bool is_standalone = false;  // one node, own server on a free loopback port
  // Where the coordinator is met; Static over several nodes, or with the agent's store:
  // master_addr:master_port; Etcd: the first member of etcd.
  Endpoint endpoint;
  EtcdConfig etcd;  // Etcd only
  std::string run_id;
  bool has_default_run_id = false;  // the user named none: other jobs have the same
  int min_nodes = 1;
  int max_nodes = 1;
  std::optional<int> node_rank;  // Static: the group rank; otherwise only a wish
  std::string local_addr;        // what other nodes reach this one by; empty: found out
  RendezvousConf conf;
  Duration wait_reminder_interval =
      limits::kWaitReminderInterval;  // how often a wait is said again
  WorkerStore worker_store = WorkerStore::Rank0;
  std::optional<std::string>
      master_addr;  // fixed by the user (Static); unset: the address of group rank 0
  std::optional<uint16_t>
      master_port;  // fixed by the user (Static on one node); unset: a fresh one each round

  // The agents meet at MASTER_PORT, and the workers' store is served there as well.
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
  std::string
      dir;  // empty: a temporary folder, removed after success; "/dev/null": no files at all
  std::vector<StreamBits> redirects;                // by local rank, always nproc entries
  std::vector<StreamBits> tee;                      // by local rank, always nproc entries
  std::optional<std::set<int>> local_ranks_filter;  // only these local ranks reach the console
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  // Macros ${role_name} ${local_rank} ${rank} ${hostname}; unset: "[${role_name}${local_rank}]:".
  std::optional<std::string> prefix_template;
};

struct WorkerConfig {
  int nproc = 1;
  std::string role = "default";
  // The executable, as it is; then, for Python, its options and the script or module. Never empty.
  // All words but the first may hold ${local_rank}; $$ is $ in them.
  std::vector<std::string> program;
  std::vector<std::string> arguments;
  std::string title;  // how summaries name the job: the script, else the program
  PassLocalRank pass_local_rank = PassLocalRank::No;
  bool is_virtual_local_rank = false;
  bool tunes_malloc = false;           // kMallocVariables, where they are not set already
  std::vector<std::vector<int>> cpus;  // that each may use, by local rank; empty: all
  bool set_omp_num_threads = false;  // to 1, and said: nproc > 1, the variable and the option unset
  int omp_threads = 0;               // --omp-threads; 0: not given
};

// --hang-timeout: agent/core/hang_watch.hpp.
struct HangConfig {
  enum class Mode { Off, Auto, Fixed } mode = Mode::Auto;
  Duration limit{};  // Fixed
};

struct FaultConfig {
  std::optional<faults::Plan> plan;  // drawn: nothing is left to chance
  std::string junit;                 // --junit; empty: none
  std::string report_file;           // the account as JSON, for cpprunctl chaos; empty: none
};

// What was measured of the launcher before its agent began.
struct StartTimes {
  Duration exec{};    // processor time until main(): exec, loading, static initialisers
  Instant main_at;    // CLOCK_BOOTTIME, as all of these
  Instant options;    // the options were read
  Instant prepared;   // reaper process, log folder, fixed port
  Instant listening;  // the rendezvous is served, or is known to be elsewhere
};

struct AgentConfig {
  RendezvousConfig rendezvous;
  WorkerConfig workers;
  LogConfig logs;
  int max_restarts = 0;
  int startup_failures = 0;                  // as Terms' own; 0: off
  Duration stop_grace = limits::kStopGrace;  // TERM to KILL, for every stop
  HangConfig hangs;
  std::optional<int64_t> debug_rank;     // this global rank waits for a debugger
  std::string timer_file;                // FIFO of torch's file timers; empty: none
  std::optional<uint16_t> health_port;   // answers health probes; unset: none
  std::vector<int> signals;              // to catch and forward
  std::string signals_text;              // as given, for TORCHELASTIC_SIGNALS_TO_HANDLE
  std::vector<std::string> environment;  // the launcher's own, "NAME=value"
  std::string temporary_dir;             // TMPDIR, else /tmp
  std::string own_error_file;  // TORCHELASTIC_ERROR_FILE of the launcher itself; "" = none
  std::string event_log_handler = "null";  // null or console
  std::string snapshot_dir;                // --snapshot-dir; empty: the launcher knows of none
  bool keeps_replicas = false;             // --snapshot-replicas=1
  FaultConfig faults;
  bool shows_timing = false;  // --timing
};

}  // namespace cpprun
