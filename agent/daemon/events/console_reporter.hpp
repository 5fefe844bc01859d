// What a run tells people: lines on the console, the failure summary, the copied error file. Events
// are event_recorder.hpp's.
#pragma once

#include <optional>
#include <string>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "agent/daemon/events/event_recorder.hpp"
#include "common/failure/failure_summary.hpp"

namespace cpprun {

class ConsoleReporter {
 public:
  // `config` outlives this.
  ConsoleReporter(const AgentConfig& config, std::string host_name);

  void omp_banner() const;
  // Says it, and returns what it said.
  std::string first_failure(const agent::FirstFailure& failure) const;

  // The end of the run; returns the exit code. After a failure `recorder` gets the failure summary
  // too.
  int finish(const agent::Finish& finish, EventRecorder& recorder) const;

 private:
  int outcome(const agent::Finish& finish, EventRecorder& recorder) const;
  std::string stopped_text(const agent::Finish& finish) const;
  void torchrun_summary(const agent::Finish& finish, EventRecorder& recorder) const;
  std::optional<Failure> account(const agent::Finish& finish) const;

  const AgentConfig& config_;
  const std::string host_name_;
};

}  // namespace cpprun
