#include "agent/daemon/events/console_reporter.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "agent/core/stop_texts.hpp"
#include "agent/daemon/stream_routes.hpp"
#include "common/exit_code.hpp"
#include "common/failure/failure_summary.hpp"
#include "common/json.hpp"
#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "common/thread/loop_mark.hpp"
#include "common/time.hpp"

namespace cpprun {
namespace {

std::string format(WallTime time, const char* pattern) {
  time_t whole = time.microseconds / 1'000'000;
  tm local{};
  const Unblocking zone(
      "the C library looks at /etc/localtime, on the file system of its own code");
  localtime_r(&whole, &local);
  std::array<char, 64> text{};
  size_t size = strftime(text.data(), text.size(), pattern, &local);
  return {text.data(), size};
}

// "2026-11-21_14:03:59", as in torchrun's summary
std::string local_stamp(WallTime time) { return format(time, "%Y-%m-%d_%H:%M:%S"); }

// "14:03:59.113"
std::string local_clock(WallTime time) {
  std::array<char, 8> millis{};
  std::snprintf(millis.data(), millis.size(), ".%03d",
                static_cast<int>(time.microseconds / 1000 % 1000));
  return format(time, "%H:%M:%S") + millis.data();
}

constexpr const char* kStars = "*****************************************\n";
constexpr const char* kBanner =
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid "
    "your system being overloaded, please further tune the variable for optimal performance in "
    "your application as needed. \n";

std::string interpreter_of(const WorkerConfig& workers) {
  return workers.program.size() > 1 ? workers.program.front() : "";
}

FailureFormat chosen_format(FailureFormat format) {
  if (format != FailureFormat::Auto) return format;
  return ::isatty(STDERR_FILENO) == 1 ? FailureFormat::Summary : FailureFormat::Both;
}

// Texts of other nodes and of workers must not move the cursor of a terminal.
FailureSummary printable(FailureSummary summary) {
  summary.headline = text::printable(summary.headline);
  for (auto& [label, value] : summary.fields) value = text::printable(value);
  summary.hint = text::printable(summary.hint);
  return summary;
}

bool is_own_failure(const WorkerExit& end) {
  return !end.is_success() && (end.is_hang() || !end.is_stopped_by_us);
}

// Whether the agent of this node prints the failure summary where all agents share a console.
bool is_of_this_node(const RootCause& cause, const std::vector<WorkerExit>& ends,
                     const std::string& host) {
  if (!cause.why.empty()) return cause.node == host;
  return std::ranges::any_of(ends, [&](const WorkerExit& end) {
    return end.rank == cause.end.rank && end.pid == cause.end.pid && !end.is_success();
  });
}

// One line for the other nodes: the node of the root cause may be gone and print nothing.
std::string elsewhere_text(const RootCause& cause) {
  if (!cause.why.empty()) return "the job failed on " + cause.node + ": " + cause.why;
  return "the job failed: " + failed_worker_text(cause);
}

// Copies the root cause's error file to the launcher's own, as torchelastic does for nested
// launchers; adds the worker's exit code in the nested form. False: it could not be read or
// written, or is larger than limits::kErrorFileBytes.
bool copy_error_file(const std::string& from, const std::string& to, int exit_code) {
  constexpr int kDepthMax = 64;
  const std::optional<std::string> bytes = read_file(from, limits::kErrorFileBytes + 1);
  if (!bytes || bytes->size() > limits::kErrorFileBytes) return false;
  auto body = parse_json<nlohmann::ordered_json>(*bytes, kDepthMax);
  const bool is_nested =
      body.is_object() && body.contains("message") && body["message"].is_object();
  if (is_nested && exit_code != 0) body["message"]["errorCode"] = exit_code;
  return write_file(to, is_nested ? dump_json(body) + "\n" : *bytes);
}

}  // namespace

ConsoleReporter::ConsoleReporter(const AgentConfig& config, std::string node_name, IoThread& io)
    : config_(config), node_name_(std::move(node_name)), io_(io) {}

// srun shows the output of all nodes: with Slurm only the first node prints it.
void ConsoleReporter::omp_banner() const {
  const ClusterConfig& cluster = config_.cluster;
  if (cluster.kind == ClusterConfig::Kind::Slurm && !cluster.is_first_node) return;
  log::plain(std::string("\n") + kStars + kBanner + kStars);
}

void ConsoleReporter::stdout_closed(bool continues) {
  const std::string text = "stdout was closed by its reader";
  if (!continues) return log::info(text);
  log::warning(text + "; the workers continue, with their log files only");
}

void ConsoleReporter::show(const agent::LogEvent& event) const {
  switch (event.level) {
    case agent::LogEvent::Level::Debug: return log::debug(event.text);
    case agent::LogEvent::Level::Info: return log::info(event.text);
    case agent::LogEvent::Level::Status: return log::status(event.text);
    case agent::LogEvent::Level::Warning: return log::warning(event.text);
  }
}

void ConsoleReporter::unended(const std::vector<StuckProcess>& left) const {
  for (const StuckProcess& process : left) {
    log::warning(name_of(process) +
                 " has not ended after SIGKILL; cpprun does not wait for it any longer");
  }
}

std::string ConsoleReporter::first_failure(const agent::FirstFailure& failure) const {
  const std::string text = failed_worker_text({node_name_, failure.end});
  const std::string restart =
      agent::restart_text(failure.assignment, failure.end.is_hang(), failure.regroups);
  const char* unless = config_.stops_on_repeat ? ", unless that cannot help" : "";
  restart.empty() ? log::info(text) : log::status(text + "; " + restart + unless);
  return text;
}

int ConsoleReporter::finish(const agent::Finish& finish, const std::string& log_folder,
                            EventRecorder& recorder) {
  log_folder_ = log_folder;
  const int code = report_outcome(finish, recorder);
  if (recorder.is_first_node()) report_goodput(recorder.goodput());
  // Otherwise the user would believe that this node took part in the job.
  if (finish.ran_no_worker && finish.job_result) {
    log::note("job '" + config_.rendezvous.run_id +
              "' has ended without this node: it was a spare and ran no worker; exit code " +
              std::to_string(code) + " is the job's");
  }
  return code;
}

// Only where a failure or the end of a submission has cost something: a job that has failed at its
// start had nothing to lose.
void ConsoleReporter::report_goodput(const GoodputAccount& account) {
  const Instant now = boot_now();
  const Goodput goodput = account.at(now);
  const bool is_resubmitted = goodput.submissions > 1;
  const bool has_lost = goodput.restarts > 0 || goodput.share().has_value();
  if (!has_lost || (goodput.failures == 0 && !is_resubmitted)) return;
  const std::string own = is_resubmitted ? "; " + own_part_text(account.own(now)) : "";
  log::status(goodput_line(goodput) + own);
}

int ConsoleReporter::report_outcome(const agent::Finish& finish, EventRecorder& recorder) {
  switch (finish.how) {
    case agent::Finish::How::Success: return kSuccess;
    case agent::Finish::How::Signal:
      log::status("ended by " + signal_name(finish.signal) +
                  (finish.text.empty() ? "; the workers are stopped" : " " + finish.text));
      return kSignalBase + finish.signal;
    case agent::Finish::How::Stopped: log::status(stopped_text(finish)); return kStoppedResumable;
    case agent::Finish::How::Unusable:
      log::error("this node is unusable: SIGKILL did not end " + finish.text +
                 "; start nothing on it before that has gone");
      return kNodeUnusable;
    case agent::Finish::How::Error:
      log::error(finish.text);
      if (!finish.lost.empty()) recorder.lost_node(finish);
      return kFailure;
    case agent::Finish::How::Failure:
      report_failure(finish, recorder);
      return finish.job_result && !finish.job_result->why_no_retry.empty() ? kRetryUseless
                                                                           : kFailure;
  }
  return kFailure;
}

// The reason for the stop, and the snapshot from which the job can continue.
std::string ConsoleReporter::stopped_text(const agent::Finish& finish) const {
  const bool is_own = !finish.job_result;  // else finish.text names the node that was asked to stop
  std::string text = "stopped on request";
  if (!finish.text.empty()) text += is_own ? " " + finish.text : " (" + finish.text + ")";
  if (!finish.snapshot) {
    const bool has_saved = !is_own || finish.has_saved;
    return text + (has_saved ? "; the workers have saved" : "; nothing is lost") +
           ", and the same command continues";
  }
  const std::string step = std::to_string(finish.snapshot->step);
  return text + " at step " + step + "; the same command continues from it (" +
         config_.snapshot_dir + "/step-" + step + ")";
}

// The failure as the coordinator knows it from all nodes, else from this node's workers; nullopt if
// no worker is known to have failed.
std::optional<Failure> ConsoleReporter::failure_of(const agent::Finish& finish) const {
  const bool has_own = std::ranges::any_of(finish.ends, is_own_failure);
  Failure failure;
  failure.title = config_.workers.title;
  failure.host = node_name_;
  failure.interpreter = interpreter_of(config_.workers);
  failure.log_folder = log_folder_;
  failure.ends = finish.ends;
  failure.restarts_used = finish.restarts_used;
  failure.max_restarts = config_.max_restarts;
  failure.max_hangs = config_.max_hangs;
  failure.admin_restarts = finish.admin_restarts;
  failure.stamp = local_stamp;
  failure.clock = local_clock;
  if (finish.job_result && finish.job_result->root_cause) {
    failure.root_cause = *finish.job_result->root_cause;
    failure.world_size = finish.job_result->world_size;
    failure.same_startup_failures = finish.job_result->same_startup_failures;
    failure.same_failures = finish.job_result->same_failures;
    failure.why_no_retry = finish.job_result->why_no_retry;
  } else if (has_own) {
    failure.root_cause = {node_name_, finish.ends[root_cause_index(finish.ends)]};
    failure.world_size = static_cast<int64_t>(finish.ends.size());
  } else {
    return std::nullopt;
  }
  return failure;
}

void ConsoleReporter::report_failure(const agent::Finish& finish, EventRecorder& recorder) {
  const std::optional<Failure> failure = failure_of(finish);
  if (!failure) {
    log::error("the job failed: " + finish.text);
    if (!finish.lost.empty()) recorder.lost_node(finish);
    return;
  }
  const FailureSummary summary = failure_summary(*failure);
  recorder.failure_summary(*failure, summary_text(printable(summary)));
  if (config_.shares_console && !is_of_this_node(failure->root_cause, finish.ends, node_name_))
    return log::error(elsewhere_text(failure->root_cause));
  const FailureFormat format = chosen_format(config_.failure_format);
  if (format != FailureFormat::Torchrun) {
    has_shown_logs_ = !log_folder_.empty();
    log::raw(summary_text(printable(summary), log::has_color()));
    show_last_lines(*failure);
  }
  if (std::ranges::none_of(finish.ends, is_own_failure)) return;
  if (format != FailureFormat::Summary) {
    log::plain("ChildFailedError: " + torchrun_summary(*failure));
  }
  copy_root_error_file(finish.ends[root_cause_index(finish.ends)]);
}

// Only if the console does not show them just above the summary: the worker ran on another node,
// its stderr goes elsewhere, or other workers failed after it.
void ConsoleReporter::show_last_lines(const Failure& failure) const {
  const WorkerExit& root = failure.root_cause.end;
  const auto is_root = [&root](const WorkerExit& end) {
    return end.rank == root.rank && end.pid == root.pid;
  };
  const auto has_followed = [&is_root](const WorkerExit& end) {
    return !is_root(end) && is_own_failure(end);
  };
  const bool is_here = std::ranges::any_of(failure.ends, is_root) &&
                       shows_stderr(config_.logs, static_cast<int>(root.local_rank.value));
  if (!is_here || std::ranges::any_of(failure.ends, has_followed))
    log::plain(last_lines_text(failure.root_cause));
}

void ConsoleReporter::copy_root_error_file(const WorkerExit& root) const {
  const std::string& to = config_.own_error_file;
  if (to.empty() || !root.error || root.error->path.empty()) return;
  const auto copy = [from = root.error->path, to, code = root.exit_code] {
    return copy_error_file(from, to, code);
  };
  if (!io_.result_of(copy, limits::kIoEndTimeout).value_or(false)) {
    log::warning("the root cause's error file could not be copied to '" + to + "'");
  }
}

}  // namespace cpprun
