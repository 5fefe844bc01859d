// The tables of jobs that cpprunctl prints. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/cpprunctl/jobs/finished_jobs.hpp"
#include "launcher/cpprunctl/jobs/job_view.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"

namespace cpprun::ctl {

// One row per job.
std::string ps_text(const std::vector<LocalJob>& jobs, bool has_color = false);
// The same, and a row per run folder of a finished job below. `now_us`: since 1970.
std::string ps_all_text(const std::vector<LocalJob>& running,
                        const std::vector<FinishedJob>& finished, int64_t now_us, bool has_color);

// The order of the workers in a table of top.
enum class WorkerOrder { Rank, Step, StepTime, Memory };
// "rank", "step", "time", "memory"; Rank for all other words.
WorkerOrder worker_order(std::string_view word);
const char* name_of(WorkerOrder order);
WorkerOrder next(WorkerOrder order);

// `job` is the coordinator's status; null if it cannot be reached. `agents` are the job's agents on
// this machine; details are known only of their workers.
std::string status_text(const std::string& run_id, const JobStatus* job,
                        const std::vector<LocalJob>& agents, WorkerOrder order = WorkerOrder::Rank,
                        bool has_color = false);

// The hosts of a job: those of its nodes, and those with faults whose agents have gone.
std::string hosts_text(const std::string& run_id, const JobStatus& job);

// "slowest: rank 3, 52.0 ms a step, at step 1200, 3 behind"; "" until workers report steps.
std::string slowest_text(const std::vector<LocalJob>& agents);

// One frame of `top`: `text` cut to the size of a terminal, with the codes that overwrite the
// previous frame in place (clearing the screen first would flicker). `foot` is the last line.
std::string frame(const std::string& text, size_t rows, size_t columns,
                  const std::string& foot = "");

}  // namespace cpprun::ctl
