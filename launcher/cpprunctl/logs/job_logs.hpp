// The lines of all ranks on all nodes of a job, read through its coordinator.
#pragma once

#include "common/result.hpp"
#include "launcher/cpprunctl/jobs/job_commands.hpp"

namespace cpprun::ctl {

// Prints what the log files hold now; with `options.follows` also new lines, until the job ends.
// Each line is printed once, and the lines of each stream of a rank in their order. Gaps are
// warnings on stderr. A coordinator that another one replaces is found again.
Status all_nodes_logs(const JobCommandOptions& options);

}  // namespace cpprun::ctl
