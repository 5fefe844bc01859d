// Jobs of this machine that have ended and whose run folder was kept.
#pragma once

#include <string>
#include <vector>

#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/event_text.hpp"

namespace cpprun::ctl {

// An agent's part of a job that has ended.
struct FinishedJob {
  std::string folder;
  RunSummary run;

  // "succeeded", "failed" or "stopped". An agent that was killed has written no outcome: failed.
  std::string state() const;
};

// Newest first; without the jobs of these agents. `log_dir`: a folder of run folders besides the
// temporary one; may be empty.
std::vector<FinishedJob> finished_jobs(const std::string& log_dir,
                                       const std::vector<LocalJob>& running);

}  // namespace cpprun::ctl
