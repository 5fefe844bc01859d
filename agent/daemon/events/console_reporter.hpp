// ConsoleReporter: messages of a run on the console, the failure summary, and the copy of the root
// cause's error file. Thread: the loop's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "agent/daemon/events/event_recorder.hpp"
#include "agent/process/diagnostics/stuck_process.hpp"
#include "common/failure/failure_summary.hpp"
#include "common/goodput/goodput_account.hpp"
#include "common/thread/io_thread.hpp"

namespace cpprun {

class ConsoleReporter {
 public:
  // `config` and `io` outlive this.
  ConsoleReporter(const AgentConfig& config, std::string node_name, IoThread& io);

  void omp_banner() const;
  void show(const agent::LogEvent& event) const;
  // The reader of stdout closed it. `continues`: streams that also go to files continue.
  static void stdout_closed(bool continues);
  // Processes that are still alive at the end of the run.
  void unended(const std::vector<StuckProcess>& left) const;
  // Logs the failure if a restart follows, since the failure summary shows the last one; returns
  // the text.
  std::string first_failure(const agent::FirstFailure& failure) const;

  // Reports the end of the run; returns the exit code. Also passes a failure summary to `recorder`.
  // Waits for the copy of the error file, at most limits::kIoEndTimeout. `log_folder`: where the
  // logs stay; empty: nowhere.
  int finish(const agent::Finish& finish, const std::string& log_folder, EventRecorder& recorder);
  // Whether the failure summary has named the log folder.
  bool has_shown_logs() const { return has_shown_logs_; }

 private:
  static void report_goodput(const GoodputAccount& account);
  int report_outcome(const agent::Finish& finish, EventRecorder& recorder);
  std::string stopped_text(const agent::Finish& finish) const;
  void report_failure(const agent::Finish& finish, EventRecorder& recorder);
  void show_last_lines(const Failure& failure) const;
  void copy_root_error_file(const WorkerExit& root) const;
  std::optional<Failure> failure_of(const agent::Finish& finish) const;

  const AgentConfig& config_;
  const std::string node_name_;
  IoThread& io_;
  std::string log_folder_;
  bool has_shown_logs_ = false;
};

}  // namespace cpprun
