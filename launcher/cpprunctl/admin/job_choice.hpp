// Which job a command that changes jobs acts on. A job that was not named is taken only if it is
// the user's own and the only one, and after a question on the terminal: several people share a
// machine.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"

namespace cpprun::ctl {

struct ChangeRequest {
  std::string name;     // of the command
  std::string command;  // the whole command line, without the name of the job
  std::string job;      // as typed; empty: not named
  // The command names a node (drain NODE), in `command` too: a job without name is taken without a
  // question, unless the command may end it.
  bool is_specific = false;
};

// The local agents of the job. Without a name: of the only job of the user `uid`. Pure.
Result<std::vector<LocalJob>> agents_to_change(std::vector<LocalJob> all, const std::string& job,
                                               int64_t uid);

// Whether too few nodes may be left without one. Pure.
bool may_end_by_drain(const std::vector<LocalJob>& agents);

// "job toy (train.py, pid 4711, 4 workers)". Requires: at least one agent. Pure.
std::string job_text(const std::vector<LocalJob>& agents);

// The same agents, after a note on stderr that names the job the command acts on. For a job
// without name it asks on the terminal instead; without a terminal it refuses.
Result<std::vector<LocalJob>> choose_job(const ChangeRequest& request);

}  // namespace cpprun::ctl
