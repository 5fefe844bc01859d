// ConsoleReporter: messages of a run on the console, the failure summary, and the copy of the root
// cause's error file. Thread: the loop's.
#pragma once

#include <optional>
#include <string>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "agent/daemon/events/event_recorder.hpp"
#include "common/failure/failure_summary.hpp"
#include "common/thread/io_thread.hpp"

namespace cpprun {

class ConsoleReporter {
 public:
  // `config` and `io` outlive this.
  ConsoleReporter(const AgentConfig& config, std::string host_name, IoThread& io);

  void omp_banner() const;
  // Logs the failure; returns the text.
  std::string first_failure(const agent::FirstFailure& failure) const;

  // Reports the end of the run; returns the exit code. Also passes a failure summary to `recorder`.
  // Waits for the copy of the error file, at most limits::kIoEndTimeout.
  int finish(const agent::Finish& finish, EventRecorder& recorder) const;

 private:
  int report_outcome(const agent::Finish& finish, EventRecorder& recorder) const;
  std::string stopped_text(const agent::Finish& finish) const;
  void torchrun_summary(const agent::Finish& finish, EventRecorder& recorder) const;
  std::optional<Failure> failure_of(const agent::Finish& finish) const;

  const AgentConfig& config_;
  const std::string host_name_;
  IoThread& io_;
};

}  // namespace cpprun
