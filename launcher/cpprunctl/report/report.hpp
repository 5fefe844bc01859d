// `cpprunctl report`: one HTML file with what a colleague or a bug report needs of a job on this
// machine: outcome, failure, versions, options, checks of the machine, events and ends of logs.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun {

struct ReportOptions {
  // A job that runs here, the beginning of the run id of a finished one, a run folder, a --log-dir;
  // empty: the newest job.
  std::string job;
  std::string output;  // the file to write; empty: cpprun-report-JOB.html in this folder
  int64_t lines = 50;  // of each log file
};

// Writes the file, which must not exist yet, for its user only, and prints its path.
Status write_report(const ReportOptions& options);

}  // namespace cpprun
