#include "launcher/cpprunctl/admin/job_choice.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "common/log/log.hpp"
#include "common/text.hpp"
#include "launcher/report/text_table.hpp"
#include "launcher/ssh/plan/shell_command.hpp"

namespace cpprun::ctl {
namespace {

// `what`: the job and what may become of it.
Status confirm(const ChangeRequest& request, const std::string& job, const std::string& what) {
  const bool has_argument = request.is_specific || request.command.starts_with("scale ");
  const std::string command =
      request.command + (has_argument ? " --job " : " ") + ssh::shell_quoted(job);
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
    return Error{ErrorKind::Usage, request.name + " needs the name of the job\nhint: cpprunctl " +
                                       clean(command) + " acts on " + what};
  }
  std::fputs((request.name + " " + what + "? [y/N] ").c_str(), stderr);
  std::string reply;
  std::getline(std::cin, reply);
  if (reply == "y" || reply == "Y" || reply == "yes") return {};
  return Error{ErrorKind::BadValue, "nothing was changed: " + request.name + " was not confirmed"};
}

}  // namespace

Result<std::vector<LocalJob>> agents_to_change(std::vector<LocalJob> all, const std::string& job,
                                               int64_t uid) {
  const bool has_own = std::ranges::find(all, uid, &LocalJob::owner) != all.end();
  if (!job.empty() || all.empty()) return agents_of(std::move(all), job);
  if (!has_own) {
    return Error{ErrorKind::Usage,
                 "the jobs on this machine belong to other users; name the one to change "
                 "(cpprunctl ps lists them)"};
  }
  std::erase_if(all, [&](const LocalJob& each) { return each.owner != uid; });
  return agents_of(std::move(all), "");
}

bool may_end_by_drain(const std::vector<LocalJob>& agents) {
  return std::ranges::any_of(
      agents, [](const LocalJob& each) { return each.view.group_size <= each.view.min_nodes; });
}

std::string job_text(const std::vector<LocalJob>& agents) {
  const admin::NodeView& view = agents.front().view;
  int64_t workers = 0;
  for (const LocalJob& agent : agents) workers = std::max(workers, agent.view.world_size);
  return clean("job " + view.run_id + " (" + view.title + ", pid " + std::to_string(view.pid) +
               ", " + text::count(static_cast<size_t>(std::max<int64_t>(workers, 0)), "worker") +
               ")");
}

Result<std::vector<LocalJob>> choose_job(const ChangeRequest& request) {
  auto agents = agents_to_change(local_jobs(), request.job, ::geteuid());
  if (!agents) return agents.error();
  const bool may_end = request.name == "drain" && may_end_by_drain(*agents);
  if (request.is_specific && !may_end) return agents;
  const std::string what =
      job_text(*agents) +
      (may_end ? ", which ends unless a spare takes the place of the node" : "");
  if (!request.job.empty()) {
    log::note(request.name + " acts on " + what);
  } else if (Status confirmed = confirm(request, agents->front().view.run_id, what); !confirmed) {
    return confirmed.error();
  }
  return agents;
}

}  // namespace cpprun::ctl
