// The tables of jobs that cpprunctl prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/cpprunctl/jobs/job_view.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"

namespace cpprun::ctl {

// One row per job.
std::string ps_text(const std::vector<LocalJob>& jobs);

// `job` is the coordinator's status; null if it cannot be reached. `agents` are the job's agents on
// this machine; details are known only of their workers.
std::string status_text(const std::string& run_id, const JobStatus* job,
                        const std::vector<LocalJob>& agents);

// The hosts of a job: those of its nodes, and those with faults whose agents have gone.
std::string hosts_text(const std::string& run_id, const JobStatus& job);

// "slowest: rank 3, 52.0 ms a step, at step 1200, 3 behind"; "" until workers report steps.
std::string slowest_text(const std::vector<LocalJob>& agents);

// One frame of `top`: `text` cut to the size of a terminal, with the codes that overwrite the
// previous frame in place (clearing the screen first would flicker).
std::string frame(const std::string& text, size_t rows, size_t columns);

}  // namespace cpprun::ctl
