#include "launcher/cpprunctl/jobs/job_commands.hpp"

#include <algorithm>
#include <set>

#include "common/limits/admin.hpp"
#include "common/machine/clock.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "launcher/cpprunctl/jobs/finished_jobs.hpp"
#include "launcher/cpprunctl/jobs/gpus.hpp"
#include "launcher/cpprunctl/jobs/job_tables.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun {
namespace {

using namespace ctl;
using namespace std::chrono_literals;

constexpr Duration kCoordinatorTakes = 5s;
// Without persistence mode nvidia-smi first loads the driver.
constexpr Duration kGpuQueryTimeout = 3s;

Result<std::vector<LocalJob>> chosen(const JobCommandOptions& options) {
  return agents_of(local_jobs(), options.job);
}

// With options.rank: asks about this worker only, and only its agent.
Status choose_rank(const JobCommandOptions& options, std::vector<LocalJob>& agents,
                   admin::AdminQuery& query) {
  if (!options.rank) return {};
  Result<LocalWorker> found = worker_of(agents, *options.rank);
  if (!found) return found.error();
  query.parameters["rank"] = std::to_string(*options.rank);
  std::erase_if(agents, [&](const LocalJob& job) { return &job != found->job; });
  return {};
}

Result<std::string> status_at(const std::string& endpoint) {
  Result<Endpoint> where = parse_endpoint(endpoint, kRendezvousPort);
  if (!where) return Error{ErrorKind::Usage, where.error().text};
  return http_get(*where, "/status", kCoordinatorTakes);
}

// The selected job: a coordinator may serve several.
Result<JobStatus> job_in(const std::string& body, std::string& run_id) {
  auto jobs = decode_status(body);
  if (!jobs) return jobs.error();
  if (run_id.empty() && jobs->size() == 1) run_id = jobs->begin()->first;
  std::set<std::string> names;
  for (const auto& [name, job] : *jobs) names.insert(name);
  const Result<std::string> meant = name_meant(names, run_id);
  if (!meant) return meant.error();
  if (const auto found = jobs->find(*meant); !meant->empty() && found != jobs->end()) {
    run_id = *meant;
    return found->second;
  }
  if (names.empty()) return Error{ErrorKind::BadValue, "the coordinator there has no job yet"};
  return Error{ErrorKind::Usage, (run_id.empty() ? "several jobs are there; name one: "
                                                 : "no job '" + run_id + "' is there; there is: ") +
                                     text::join({names.begin(), names.end()}, ", ")};
}

// The body of /status, of the coordinator of the chosen job; `run_id` becomes the job's.
Result<std::string> status_body(const JobCommandOptions& options, std::string& run_id) {
  if (!options.endpoint.empty()) return status_at(options.endpoint);
  Result<std::vector<LocalJob>> agents = chosen(options);
  if (!agents) return agents.error();
  run_id = agents->front().view.run_id;
  const std::string& where = agents->front().view.coordinator;
  if (!where.empty()) return status_at(where);
  return Error{ErrorKind::System, "no connection to the coordinator"};
}

Result<std::string> remote_status_text(const JobCommandOptions& options) {
  Result<std::string> body = status_at(options.endpoint);
  if (!body) return body.error();
  std::string run_id = options.job;
  Result<JobStatus> job = job_in(*body, run_id);
  if (!job) return job.error();
  return options.is_json ? joined_json({}, *body)
                         : status_text(run_id, &*job, {}, WorkerOrder::Rank, has_color());
}

Result<int> signal_of(const std::string& given) {
  if (const auto number = text::parse_int(given); number && *number >= 1 && *number <= 64) {
    return static_cast<int>(*number);
  }
  std::string name = given.starts_with("SIG") ? given : "SIG" + given;
  if (const auto number = signal_number(name)) return *number;
  return Error{ErrorKind::Usage, "'" + given + "' is no signal; write USR1, SIGUSR1 or 10"};
}

}  // namespace

Status ps(const JobCommandOptions& options) {
  const std::vector<LocalJob> jobs = local_jobs();
  const bool is_all = options.is_all || !options.log_dir.empty();
  std::vector<FinishedJob> finished;
  if (is_all) finished = finished_jobs(options.log_dir, jobs);
  if (options.is_json) {
    std::vector<std::string> bodies;
    for (const LocalJob& job : jobs) bodies.push_back(job.body);
    print(is_all ? all_jobs_json(bodies, finished) : joined_json(bodies, ""));
  } else {
    print_unchanged(is_all ? ps_all_text(jobs, finished, wall_now().microseconds, has_color())
                           : ps_text(jobs, has_color()));
  }
  return {};
}

Result<std::string> status_text_of(const JobCommandOptions& options, bool is_top) {
  if (!options.endpoint.empty()) return remote_status_text(options);
  Result<std::vector<LocalJob>> agents = chosen(options);
  if (!agents) return agents.error();
  std::string run_id = agents->front().view.run_id;
  const std::string& where = agents->front().view.coordinator;
  Result<std::string> body = where.empty()
                                 ? Error{ErrorKind::System, "no connection to the coordinator"}
                                 : status_at(where);
  if (options.is_json) {
    std::vector<std::string> bodies;
    for (const LocalJob& job : *agents) bodies.push_back(job.body);
    return joined_json(bodies, body ? *body : "");
  }
  Result<JobStatus> job = body ? job_in(*body, run_id) : Result<JobStatus>(body.error());
  std::string text =
      status_text(run_id, job ? &*job : nullptr, *agents, worker_order(options.sort), has_color()) +
      slowest_text(*agents);
  if (!job) text += "the coordinator: " + clean(job.error().text) + "\n";
  if (is_top) text += gpus_text(gpus_here(kGpuQueryTimeout));
  return text;
}

Status status(const JobCommandOptions& options) {
  Result<std::string> text = status_text_of(options);
  if (!text) return text.error();
  if (options.is_json) {
    print(*text);
  } else {
    print_unchanged(*text);
  }
  return {};
}

Status nodes(const JobCommandOptions& options) {
  std::string run_id = options.job;
  Result<std::string> body = status_body(options, run_id);
  if (!body) return body.error();
  Result<JobStatus> job = job_in(*body, run_id);
  if (!job) return job.error();
  print(options.is_json ? joined_json({}, *body) : hosts_text(run_id, *job));
  return {};
}

Status pid(const JobCommandOptions& options) {
  Result<std::vector<LocalJob>> agents = chosen(options);
  if (!agents) return agents.error();
  Result<LocalWorker> found = worker_of(*agents, options.rank.value_or(0));
  if (!found) return found.error();
  const int64_t pid = found->worker->pid;
  print(options.is_json ? pid_json(pid, found->worker->rank, found->job->view.node)
                        : std::to_string(pid) + "\n");
  return {};
}

Status send_signal(const JobCommandOptions& options) {
  Result<int> number = signal_of(options.signal);
  if (!number) return number.error();
  Result<std::vector<LocalJob>> agents = chosen(options);
  if (!agents) return agents.error();
  admin::AdminQuery query{"signal", {{"signal", std::to_string(*number)}}};
  if (Status ok = choose_rank(options, *agents, query); !ok) return ok;
  for (const LocalJob& job : *agents) {
    Result<std::string> body = ask(job.agent, query, limits::kAdminReplyTimeout);
    if (!body) return body.error();
    print(job.view.node + ": " + done_text(*body) + "\n");
  }
  return {};
}

Status stacks(const JobCommandOptions& options) {
  Result<std::vector<LocalJob>> agents = chosen(options);
  if (!agents) return agents.error();
  if (!options.node.empty()) {
    std::erase_if(*agents, [&](const LocalJob& job) { return job.view.node != options.node; });
    if (agents->empty()) {
      return Error{ErrorKind::BadValue, "no node '" + options.node + "' of the job is here"};
    }
  }
  admin::AdminQuery query{"stacks", {}};
  if (Status ok = choose_rank(options, *agents, query); !ok) return ok;
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
