// The verb stacks: the call stacks of this machine's workers.
#include "common/limits/admin.hpp"
#include "launcher/cpprunctl/jobs/job_verbs.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/cpprunctl/text/output.hpp"

namespace cpprun {

using namespace ctl;

Status stacks(const JobCommandOptions& options) {
  Result<std::vector<LocalJob>> agents = agents_of(local_jobs(), options.job);
  if (!agents) return agents.error();
  if (!options.node.empty()) {
    std::erase_if(*agents, [&](const LocalJob& job) { return job.view.node != options.node; });
    if (agents->empty()) {
      return Error{ErrorKind::BadValue, "no node '" + options.node + "' of the job is here"};
    }
  }
  admin::AdminQuery query{"stacks", {}};
  if (options.rank) {
    Result<LocalWorker> found = worker_of(*agents, *options.rank);
    if (!found) return found.error();
    query.parameters["rank"] = std::to_string(*options.rank);
    std::erase_if(*agents, [&](const LocalJob& job) { return &job != found->job; });
  }
  std::vector<std::pair<std::string, admin::WorkerStack>> all;
  for (const LocalJob& job : *agents) {
    Result<std::string> body = ask(job.agent, query, limits::kAdminReplyTimeout);
    if (!body) return body.error();
    for (admin::WorkerStack& stack : decode_stacks(*body)) {
      if (!options.is_json) print(stack.text + "\n");
      all.emplace_back(job.view.node, std::move(stack));
    }
  }
  if (options.is_json) print(stacks_json(all));
  return {};
}

}  // namespace cpprun
