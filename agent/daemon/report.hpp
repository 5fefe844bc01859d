// What a run tells people and scripts: lines on the console, the failure summary, the event log,
// the copied error file.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"

namespace cpprun {

class Report {
 public:
  // `run_folder` gets events.jsonl; empty: none. With --event-log-handler=console the events go to
  // stderr as well.
  Report(const AgentConfig& config, std::string host_name, const std::string& run_folder);
  ~Report();
  Report(const Report&) = delete;

  void omp_banner() const;
  void first_failure(const agent::FirstFailure& failure) const;
  void round_started(const control::World& world) const;
  void worker_ended(const WorkerEnd& end) const;

  // The end of the run; returns the exit code.
  int finish(const agent::Finish& finish) const;

 private:
  std::string stopped_text(const agent::Finish& finish) const;
  void failure_summary(const agent::Finish& finish) const;
  void event(const std::string& line) const;

  const AgentConfig& config_;
  const std::string host_name_;
  std::FILE* events_ = nullptr;
};

}  // namespace cpprun
