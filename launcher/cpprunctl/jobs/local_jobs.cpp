#include "launcher/cpprunctl/jobs/local_jobs.hpp"

#include <algorithm>
#include <set>

#include "common/text.hpp"

namespace cpprun::ctl {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAgentTimeout = 2s;  // short: a suspended agent delays the others by this

std::string names_of(const std::set<std::string>& names) {
  return text::join({names.begin(), names.end()}, ", ");
}

}  // namespace

std::vector<LocalJob> local_jobs() {
  std::vector<std::pair<LocalAgent, OpenQuery>> queries;
  for (const LocalAgent& agent : local_agents()) {
    Result<OpenQuery> query = OpenQuery::send(agent, {"status", {}}, kAgentTimeout);
    if (query) queries.emplace_back(agent, std::move(*query));
  }
  std::vector<LocalJob> all;
  for (auto& [agent, query] : queries) {
    Result<std::string> body = query.receive();
    if (!body) continue;
    Result<admin::NodeView> view = decode_node_view(*body);
    if (!view) continue;
    all.push_back({std::move(agent), std::move(*view), std::move(*body), query.owner()});
  }
  return all;
}

Result<std::string> name_meant(const std::set<std::string>& names, const std::string& given) {
  if (given.empty() || names.contains(given)) return given;
  std::set<std::string> fitting;
  for (const std::string& name : names) {
    if (name.starts_with(given)) fitting.insert(name);
  }
  if (fitting.size() > 1) {
    return Error{ErrorKind::Usage, "several jobs begin with '" + given + "': " + names_of(fitting)};
  }
  return fitting.empty() ? "" : *fitting.begin();
}

Result<std::vector<LocalJob>> agents_of(std::vector<LocalJob> all, const std::string& run_id) {
  std::set<std::string> names;
  for (const LocalJob& job : all) names.insert(job.view.run_id);
  if (names.empty()) {
    return Error{ErrorKind::BadValue,
                 "no job of yours runs on this machine; --rdzv-endpoint HOST:PORT reads one "
                 "elsewhere"};
  }
  if (run_id.empty() && names.size() > 1) {
    return Error{ErrorKind::Usage, "several jobs run here; name one: " + names_of(names)};
  }
  const Result<std::string> meant = name_meant(names, run_id);
  if (!meant) return meant.error();
  if (!run_id.empty() && meant->empty()) {
    return Error{ErrorKind::BadValue,
                 "no job '" + run_id + "' runs here; there is: " + names_of(names)};
  }
  const std::string wanted = run_id.empty() ? *names.begin() : *meant;
  std::erase_if(all, [&](const LocalJob& job) { return job.view.run_id != wanted; });
  std::ranges::stable_sort(all, std::greater(), [](const LocalJob& j) { return j.view.is_host; });
  return all;
}

Result<LocalWorker> worker_of(const std::vector<LocalJob>& agents, int64_t rank) {
  std::string here;
  for (const LocalJob& job : agents) {
    for (const admin::WorkerView& worker : job.view.workers) {
      if (worker.rank == rank) return LocalWorker{&job, &worker};
      here += (here.empty() ? "" : ", ") + std::to_string(worker.rank);
    }
  }
  return Error{ErrorKind::BadValue, "rank " + std::to_string(rank) + " does not run here; " +
                                        (here.empty() ? "no worker does" : "these do: " + here) +
                                        " (cpprunctl status shows which node has it)"};
}

}  // namespace cpprun::ctl
