// The options with their types and torchrun's defaults; their values are not checked yet:
// "--nnodes=banana" is still a text here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

struct ParsedOptions {
  std::string nnodes = "1:1";
  std::string nproc_per_node = "1";
  std::optional<int64_t> node_rank;
  std::string role = "default";
  bool virtual_local_rank = false;
  std::string numa_binding;

  bool standalone = false;
  std::string rdzv_backend = "static";
  std::string rdzv_endpoint;
  std::string rdzv_id = "none";
  std::string job_name;
  std::string rdzv_conf;
  std::string local_addr;
  std::string master_addr;  // empty: 127.0.0.1
  std::optional<int64_t> master_port;

  bool module = false;
  bool no_python = false;
  bool run_path = false;
  std::string start_method = "spawn";

  int64_t max_restarts = 0;
  double monitor_interval = 0.1;
  std::string signals_to_handle = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  std::optional<int64_t> shutdown_timeout;
  std::optional<int64_t> regroup_timeout;

  std::string failure_format;  // empty, summary, torchrun, both
  std::string color = "auto";
  bool quiet = false;
  bool verbose = false;
  std::string log_dir;
  std::string redirects = "0";
  std::string tee = "0";
  std::string local_ranks_filter;
  std::string duplicate_stdout_filters;
  std::string duplicate_stderr_filters;
  std::string log_line_prefix_template;
  std::string logs_specs;
  std::string event_log_handler = "null";

  std::string worker_store;         // empty, rank0, agent
  std::string store_allow = "all";  // all, members
  std::string pass_local_rank;      // empty, dash, underscore
  bool tune_malloc = false;
  std::optional<int64_t> max_hangs;
  std::optional<int64_t> max_node_losses;
  double restart_backoff = 0;
  int64_t startup_failures = 0;
  int64_t exclude_after = 0;
  int64_t link_check = 0;
  int64_t spares = 0;
  std::string node_check;
  double node_check_timeout = 30;
  std::string exclude_hook;
  std::string state_dir;
  std::string on_repeat = "report";   // report, stop
  std::string stragglers = "report";  // report, drain, exclude
  bool timing = false;
  std::string notify_url_file;
  std::string snapshot_dir;
  int64_t snapshot_replicas = 0;
  std::string faults;
  std::optional<int64_t> seed;
  std::string junit;
  std::string report;
  std::string hang_timeout = "auto";
  std::optional<int64_t> debug_rank;
  std::string omp_threads;
  std::string preload = "off";
  std::string progress = "off";  // auto, off
  std::string allowed_host;
  std::string secret_file;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  std::string cluster = "auto";
  std::string requeue;  // empty: not given; "yes" without a number
  std::string slurm_secret = "auto";
  std::string preempt_signal = "USR1,USR2";
  std::string hosts;  // the options of launcher/ssh, which reads all values of `exported`
  std::string hostfile;
  std::string include;
  std::string exclude;
  std::string exported;
  std::string ssh = "ssh";
  std::string ssh_tree;  // empty: not given; "yes" without a number
  std::string remote_cpprun;
  bool stdin_control = false;
  std::string print_completion;

  std::string script;
  std::vector<std::string> script_arguments;

  // How the user spelled each given option, by its dashed name; errors quote it.
  std::map<std::string_view, std::string> spellings;

  // The job runs on hosts that this launcher reaches by ssh.
  bool is_over_ssh() const { return is_given("hosts") || is_given("hostfile"); }
  bool is_given(std::string_view name) const { return spellings.contains(name); }
  // "--nproc_per_node=many", "PET_NPROC_PER_NODE=many", "-r 7".
  std::string shown(std::string_view name, std::string_view value) const;
  std::string shown(std::string_view name, int64_t value) const {
    return shown(name, std::to_string(value));
  }
};

}  // namespace cpprun
