// The agents on this machine that answer, and the selection of those that a command addresses.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "launcher/cpprunctl/jobs/agent_client.hpp"
#include "launcher/cpprunctl/jobs/job_view.hpp"

namespace cpprun::ctl {

// An agent on this machine that has answered.
struct LocalJob {
  LocalAgent agent;
  admin::NodeView view;
  std::string body;    // the reply, unparsed
  int64_t owner = -1;  // user id of the agent's process
};

// All agents that answer; omits those of other users and those that are exiting.
std::vector<LocalJob> local_jobs();

// The name among `names` that the user means: the same one, else the only one that begins with
// `given`. "": none does. Error: several do. Pure.
Result<std::string> name_meant(const std::set<std::string>& names, const std::string& given);

// The local agents of the job `run_id` (a unique prefix is enough), or of the only job if it is
// empty. The agent beside the coordinator comes first. Pure.
Result<std::vector<LocalJob>> agents_of(std::vector<LocalJob> all, const std::string& run_id);

// A worker on this machine, and its agent.
struct LocalWorker {
  const LocalJob* job = nullptr;
  const admin::WorkerView* worker = nullptr;
};
// Error: the rank is not on this machine; the text lists the ranks that are. Pure.
Result<LocalWorker> worker_of(const std::vector<LocalJob>& agents, int64_t rank);

}  // namespace cpprun::ctl
