// The report of a job on this machine, from its run folder: one HTML page with outcome, failure,
// versions, options, stacks, ends of logs, events and checks of the machine. `cpprunctl report` and
// `cpprun --report` write it.
//
// Reads files and probes the machine, so not for loop threads.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"
#include "launcher/report/event_text.hpp"

namespace cpprun::ctl {

struct JobReportOptions {
  std::string folder;  // the run folder
  int64_t lines = 50;  // of each log file
  int64_t agent = -1;  // process id of the agent, whose command is shown; -1: it has ended
};

struct JobReport {
  std::string run_id;
  std::string html;
};

// Error: the run folder has no events file that can be read.
Result<JobReport> make_job_report(const JobReportOptions& options);

// The summary of the run with this events file, from the file's first and last part.
RunSummary read_run(int file);

}  // namespace cpprun::ctl
