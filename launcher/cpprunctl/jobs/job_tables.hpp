// The tables that people see of jobs. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/cpprunctl/jobs/job_view.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"

namespace cpprun::ctl {

std::string ps_text(const std::vector<LocalJob>& jobs);

// `job` is what the coordinator says; null if it can't be asked. `agents` are those of the job on
// this machine: only of their workers more is known than that they are there.
std::string status_text(const std::string& run_id, const JobStatus* job,
                        const std::vector<LocalJob>& agents);

}  // namespace cpprun::ctl
