// What a run tells people: lines on the console, the failure summary, the copied error file. Events
// are recorder.hpp's.
#pragma once

#include <optional>
#include <string>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "agent/daemon/events/recorder.hpp"
#include "common/failure/verdict.hpp"

namespace cpprun {

class Report {
 public:
  // `config` outlives this.
  Report(const AgentConfig& config, std::string host_name);

  void omp_banner() const;
  // Says it, and returns what it said.
  std::string first_failure(const agent::FirstFailure& failure) const;

  // The end of the run; returns the exit code. After a failure `recorder` gets the verdict too.
  int finish(const agent::Finish& finish, Recorder& recorder) const;

 private:
  int outcome(const agent::Finish& finish, Recorder& recorder) const;
  std::string stopped_text(const agent::Finish& finish) const;
  void failure_summary(const agent::Finish& finish, Recorder& recorder) const;
  std::optional<Failure> account(const agent::Finish& finish) const;

  const AgentConfig& config_;
  const std::string host_name_;
};

}  // namespace cpprun
