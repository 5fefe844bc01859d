// Options of the agent itself: restarts, stopping, signals, events; and the environment variables
// that it reads.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/limits/agent.hpp"
#include "common/limits/notice.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

constexpr int64_t kMaxRestarts = 1'000'000'000;
constexpr int64_t kMaxGraceSeconds = 100'000'000;

Status check_budget(const ParsedOptions& options, std::string_view name,
                    std::optional<int64_t> value) {
  if (!value || (*value >= 0 && *value <= kMaxRestarts)) return {};
  return bad_value(options.shown(name, *value) +
                   " is no valid value\nhint: write 0 for none, or how many are allowed");
}

std::optional<int> as_int(std::optional<int64_t> value) {
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

Status check_numbers(const ParsedOptions& options) {
  if (options.max_restarts < 0 || options.max_restarts > kMaxRestarts) {
    return bad_value(options.shown("max-restarts", options.max_restarts) +
                     " is no valid value\nhint: write 0 for no restart, or how many are allowed");
  }
  if (Status status = check_budget(options, "max-hangs", options.max_hangs); !status) return status;
  if (Status status = check_budget(options, "max-node-losses", options.max_node_losses); !status) {
    return status;
  }
  if (!(options.restart_backoff >= 0) ||
      options.restart_backoff > to_seconds(limits::kRestartBackoffMax)) {
    return bad_value("--restart-backoff must be 0 or more seconds, and " +
                     text::seconds(limits::kRestartBackoffMax, 0) + " at most");
  }
  if (options.startup_failures < 0 || options.startup_failures > kMaxRestarts) {
    return bad_value(options.shown("startup-failures", options.startup_failures) +
                     " is no valid value\nhint: write after how many start-up failures in a row "
                     "the job ends, or 0");
  }
  if (options.exclude_after < 0 || options.exclude_after > kMaxRestarts) {
    return bad_value(
        options.shown("exclude-after", options.exclude_after) +
        " is no valid value\nhint: write after how many faults a host is excluded, or 0");
  }
  if (!(options.monitor_interval > 0)) {
    std::string value = options.monitor_interval < 0 ? "below 0" : "0";
    return bad_value("--monitor-interval is " + value +
                     "; it must be above 0 (and has no effect: the end of a worker is an event)");
  }
  return {};
}

Status read_stop_grace(const ParsedOptions& options, const Environment& environment,
                       AgentConfig& config) {
  std::optional<int64_t> grace = options.shutdown_timeout;
  std::string what = grace ? options.shown("shutdown-timeout", *grace) : "";
  std::string_view variable = environment.text("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  if (!grace && !variable.empty()) {
    what = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=" + std::string(variable);
    grace = text::parse_int(variable);
    if (!grace) return bad_value(what + " is not a whole number of seconds");
  }
  if (!grace) return {};
  if (*grace < 0 || *grace > kMaxGraceSeconds) {
    return bad_value(
        what + " is no valid value\nhint: write the seconds from SIGTERM to SIGKILL, 0 or more");
  }
  config.stop_grace = std::chrono::seconds(*grace);
  return {};
}

Status read_regroup_timeout(const ParsedOptions& options, AgentConfig& config) {
  if (!options.regroup_timeout) return {};
  const int64_t limit = *options.regroup_timeout;
  if (limit < 0 || limit > kMaxGraceSeconds) {
    return bad_value(
        options.shown("regroup-timeout", limit) +
        " is no valid value\nhint: write the seconds that workers have to regroup, 0 or more");
  }
  config.regroup_timeout = std::chrono::seconds(limit);
  return {};
}

void read_signals(const ParsedOptions& options, Launch& launch) {
  AgentConfig& config = launch.config;
  config.signals_text = options.signals_to_handle;
  if (text::strip(options.signals_to_handle).empty()) return;
  for (const std::string& entry : text::split(options.signals_to_handle, ',')) {
    std::string name(text::strip(entry));
    std::optional<int> number = signal_number(name);
    std::string what = "--signals-to-handle: ";
    if (!number) {
      launch.warnings.push_back(what + "'" + name + "' is no signal; names look like SIGTERM");
    } else if (*number == SIGKILL || *number == SIGSTOP) {
      launch.warnings.push_back(what + name + " can't be caught by any program");
    } else if (std::find(config.signals.begin(), config.signals.end(), *number) ==
               config.signals.end()) {
      config.signals.push_back(*number);
    }
  }
}

std::optional<int> preempt_signal(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  if (name == "USR1") return SIGUSR1;
  if (name == "USR2") return SIGUSR2;
  return std::nullopt;
}

// Slurm's users choose the signal that announces the end: #SBATCH --signal=USR1@90.
Status read_stop_signals(const ParsedOptions& options, ClusterConfig& cluster) {
  if (options.preempt_signal == "none") return {};
  for (const std::string& entry : text::split(options.preempt_signal, ',')) {
    const std::optional<int> signal = preempt_signal(text::strip(entry));
    if (!signal) {
      return bad_value(options.shown("preempt-signal", options.preempt_signal) +
                       " is no valid value\nhint: write USR1, USR2, both with a comma, or none");
    }
    if (cluster.kind == ClusterConfig::Kind::Slurm) cluster.stop_signals.push_back(*signal);
  }
  return {};
}

// A script that is also used outside of Slurm may keep the option.
Status read_requeue(const ParsedOptions& options, Launch& launch) {
  if (!options.is_given("requeue") || options.requeue == "no") return {};
  const bool is_unlimited = options.requeue == "yes";
  const std::optional<int64_t> most =
      is_unlimited ? std::optional(INT64_MAX) : text::parse_int(options.requeue);
  if (!most || *most < 1) {
    return bad_value(
        options.shown("requeue", options.requeue) +
        " is no valid value\nhint: write how often the job may be requeued, such as --requeue=5");
  }
  ClusterConfig& cluster = launch.config.cluster;
  cluster.requeues_max = most;
  if (cluster.kind == ClusterConfig::Kind::Slurm) return {};
  launch.warnings.push_back("--requeue has no effect: this is no Slurm job");
  return {};
}

Status read_event_handler(const ParsedOptions& options, AgentConfig& config) {
  const std::string& name = options.event_log_handler;
  if (name != "null" && name != "console" && name != "dynamic_rendezvous") {
    return bad_value(options.shown("event-log-handler", name) +
                     " is not known\nhint: use null or console (events are in events.jsonl of the "
                     "log folder too)");
  }
  config.event_log_handler = name == "console" ? "console" : "null";
  return {};
}

// A static job has fixed ranks, and a job of one node has no other: neither can continue without a
// host.
Status read_exclusion(const ParsedOptions& options, AgentConfig& config) {
  config.exclude_after = static_cast<int>(options.exclude_after);
  config.state_dir = options.state_dir;
  config.stragglers = options.stragglers == "drain"     ? StragglerPolicy::Drain
                      : options.stragglers == "exclude" ? StragglerPolicy::Exclude
                                                        : StragglerPolicy::Report;
  const RendezvousConfig& rendezvous = config.rendezvous;
  const bool acts_on_stragglers = config.stragglers != StragglerPolicy::Report;
  if (options.exclude_after == 0 && !acts_on_stragglers) return {};
  const std::string what = options.exclude_after != 0
                               ? options.shown("exclude-after", options.exclude_after)
                               : options.shown("stragglers", options.stragglers);
  if (rendezvous.is_standalone || rendezvous.backend == Backend::Static) {
    return bad_value(what + " needs a job of several nodes with --rdzv-backend=c10d or etcd: " +
                     (rendezvous.is_standalone ? "this job has one node"
                                               : "the ranks of a static job are fixed"));
  }
  return {};
}

Status read_exclude_hook(const ParsedOptions& options, AgentConfig& config) {
  config.exclude_hook = text::words(options.exclude_hook);
  if (options.is_given("exclude-hook") && config.exclude_hook.empty()) {
    return bad_value("--exclude-hook is empty\nhint: name a program that excludes a host");
  }
  return {};
}

Status read_node_check(const ParsedOptions& options, AgentConfig& config) {
  if (!options.is_given("node-check")) return {};
  config.node_check.command = text::words(options.node_check);
  if (config.node_check.command.empty()) {
    return bad_value("--node-check is empty\nhint: name a program that checks this node");
  }
  const double timeout = options.node_check_timeout;
  if (!(timeout > 0) || timeout > to_seconds(limits::kNodeCheckTimeoutMax)) {
    return bad_value("--node-check-timeout must be above 0, and " +
                     text::seconds(limits::kNodeCheckTimeoutMax, 0) + " at most");
  }
  config.node_check.timeout = seconds(timeout);
  return {};
}

Status read_link_check(const ParsedOptions& options, AgentConfig& config) {
  if (options.link_check < 0 || options.link_check > limits::kLinkCheckMiBMax) {
    return bad_value(options.shown("link-check", options.link_check) +
                     " is out of range\nhint: write a number of mebibytes from 1 to " +
                     std::to_string(limits::kLinkCheckMiBMax) +
                     ", for example 16, or 0 for no check");
  }
  config.link_check_bytes = options.link_check << 20;
  return {};
}

// The folder may be missing: the first snapshot creates it.
Status read_snapshot_dir(const ParsedOptions& options, const Environment& environment,
                         AgentConfig& config) {
  if (options.snapshot_replicas != 0 && options.snapshot_replicas != 1) {
    return bad_value(
        options.shown("snapshot-replicas", options.snapshot_replicas) +
        " is no valid value\nhint: write 1 for a copy at one neighbour node, or 0 for none");
  }
  if (options.snapshot_replicas == 1 && options.snapshot_dir.empty()) {
    return bad_value(options.shown("snapshot-replicas", options.snapshot_replicas) +
                     " needs --snapshot-dir, the folder in which the workers keep their snapshots");
  }
  config.keeps_replicas = options.snapshot_replicas == 1;
  if (options.snapshot_dir.empty()) return {};
  const FileKind kind = environment.look_at(options.snapshot_dir).kind;
  if (kind != FileKind::Directory && kind != FileKind::Missing) {
    return bad_value(options.shown("snapshot-dir", options.snapshot_dir) +
                     " is no folder\nhint: name the one in which the workers keep their snapshots");
  }
  config.snapshot_dir = options.snapshot_dir;
  return {};
}

// A secret: many services have the token in the path. So it is no value of an option.
Status read_notify_url(const ParsedOptions& options, const Environment& environment,
                       AgentConfig& config) {
  config.notify_url = environment.text("CPPRUN_NOTIFY_URL");
  std::string from = "CPPRUN_NOTIFY_URL";
  if (!options.notify_url_file.empty()) {
    from = options.shown("notify-url-file", options.notify_url_file);
    const auto text = environment.read_file(options.notify_url_file, limits::kUrlBytes + 2);
    if (!text) return bad_value(from + " cannot be read");
    config.notify_url = text::strip(*text);
    if (config.notify_url.empty()) return bad_value(from + " is empty; write a URL into it");
  }
  if (config.notify_url.empty()) return {};
  const bool is_http =
      config.notify_url.starts_with("http://") || config.notify_url.starts_with("https://");
  if (!is_http) return bad_value(from + ": the URL must begin with http:// or https://");
  return {};
}

// With --debug-rank no hang is detected: a worker in a debugger, and its peers, make no progress.
Status read_hangs(const ParsedOptions& options, AgentConfig& config) {
  if (options.debug_rank && *options.debug_rank < 0) {
    return bad_value(
        options.shown("debug-rank", *options.debug_rank) +
        " is no valid value\nhint: write the global rank of the worker to debug, 0 or more");
  }
  config.debug_rank = options.debug_rank;
  const std::string& token = options.hang_timeout;
  using Mode = HangConfig::Mode;
  if (token == "off" || token == "auto") {
    config.hangs.mode = token == "off" || config.debug_rank ? Mode::Off : Mode::Auto;
    return {};
  }
  const std::optional<double> limit = text::parse_double(token);
  if (!limit || *limit < to_seconds(limits::kHangPollIntervalMin) || *limit > kMaxGraceSeconds) {
    return bad_value(options.shown("hang-timeout", token) +
                     " is no valid value\nhint: write auto, off, or seconds without a sign of "
                     "life, such as 600");
  }
  config.hangs.limit = seconds(*limit);
  config.hangs.mode = config.debug_rank ? Mode::Off : Mode::Fixed;
  return {};
}

// A TMPDIR that is not a folder is ignored, as in Python.
std::string temporary_dir(const Environment& environment) {
  std::string named(environment.text("TMPDIR"));
  if (named.empty() || environment.look_at(named).kind != FileKind::Directory) return "/tmp";
  return named;
}

// torch's variables, and torch's default path.
std::string timer_file(const Environment& environment, const std::string& temporary) {
  if (environment.text("TORCHELASTIC_ENABLE_FILE_TIMER") != "1") return "";
  const std::string given(environment.text("TORCHELASTIC_TIMER_FILE"));
  return given.empty() ? temporary + "/watchdog_timer_" + environment.make_uuid() : given;
}

// An invalid port opens none; torchrun reports that at INFO, which is hidden by default.
std::optional<uint16_t> health_port(const Environment& environment, Launch& launch) {
  const std::string_view given = environment.text("TORCHELASTIC_HEALTH_CHECK_PORT");
  if (given.empty()) return std::nullopt;
  const std::optional<int64_t> number = text::parse_int(given);
  if (number && *number > 0 && *number <= UINT16_MAX) return static_cast<uint16_t>(*number);
  launch.warnings.push_back("TORCHELASTIC_HEALTH_CHECK_PORT=" + std::string(given) +
                            " is no port, so health probes are not answered; write a number"
                            " from 1 to 65535");
  return std::nullopt;
}

}  // namespace

Status resolve_agent(const ParsedOptions& options, const Environment& environment, Launch& launch) {
  AgentConfig& config = launch.config;
  if (Status status = check_numbers(options); !status) return status;
  if (Status status = read_stop_grace(options, environment, config); !status) return status;
  if (Status status = read_regroup_timeout(options, config); !status) return status;
  if (Status status = read_event_handler(options, config); !status) return status;
  if (Status status = read_snapshot_dir(options, environment, config); !status) return status;
  if (Status status = read_hangs(options, config); !status) return status;
  if (Status status = read_stop_signals(options, config.cluster); !status) return status;
  if (Status status = read_requeue(options, launch); !status) return status;
  if (Status status = read_exclusion(options, config); !status) return status;
  if (Status status = read_node_check(options, config); !status) return status;
  if (Status status = read_link_check(options, config); !status) return status;
  if (Status status = read_exclude_hook(options, config); !status) return status;
  if (Status status = read_notify_url(options, environment, config); !status) return status;
  read_signals(options, launch);
  config.max_restarts = static_cast<int>(options.max_restarts);
  config.max_hangs = as_int(options.max_hangs);
  config.max_node_losses = as_int(options.max_node_losses);
  config.restart_backoff = seconds(options.restart_backoff);
  config.startup_failures = static_cast<int>(options.startup_failures);
  config.stops_on_repeat = options.on_repeat == "stop";
  config.shows_timing = options.timing;
  config.shares_console = options.stdin_control;
  config.environment = environment.variables;
  config.temporary_dir = temporary_dir(environment);
  config.timer_file = timer_file(environment, config.temporary_dir);
  config.health_port = health_port(environment, launch);
  config.own_error_file = environment.text("TORCHELASTIC_ERROR_FILE");
  return {};
}

}  // namespace cpprun
