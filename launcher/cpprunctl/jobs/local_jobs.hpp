// The agents on this machine that answer, and which of them a command is about.
#pragma once

#include <string>
#include <vector>

#include "launcher/cpprunctl/jobs/agent_client.hpp"
#include "launcher/cpprunctl/jobs/job_view.hpp"

namespace cpprun::ctl {

// An agent here that has answered.
struct LocalJob {
  LocalAgent agent;
  admin::NodeView view;
  std::string body;  // the view as it came
};

// All that answer; those of other users, and those that are just ending, are left out.
std::vector<LocalJob> local_jobs();

// The agents here of one job: of the one named, or of the only one there is. The host's first.
// Pure.
Result<std::vector<LocalJob>> agents_of(std::vector<LocalJob> all, const std::string& run_id);

// A worker here, and the agent that has it.
struct LocalWorker {
  const LocalJob* job = nullptr;
  const admin::WorkerView* worker = nullptr;
};
// Error: it does not live here; the text says which ranks do. Pure.
Result<LocalWorker> worker_of(const std::vector<LocalJob>& agents, int64_t rank);

}  // namespace cpprun::ctl
