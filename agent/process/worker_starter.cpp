#include "agent/process/worker_starter.hpp"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/check.hpp"
#include "common/limits/agent.hpp"
#include "common/text.hpp"

namespace cpprun {

std::string slow_start_text(LocalRank worker, const std::string& program) {
  return "the file system of " + program + " does not answer: the start of local rank " +
         std::to_string(worker.value) + " has not returned for " +
         text::seconds(limits::kSpawnTimeout, 0) + "; waiting";
}

// All workers of a round usually run one program, so it is searched on PATH once.
class WorkerStarter::ProgramSearch {
 public:
  Result<std::string> find(const WorkerSpec& spec) {
    const auto path = std::ranges::find_if(
        spec.environment, [](const std::string& entry) { return entry.starts_with("PATH="); });
    const std::string path_text = path == spec.environment.end() ? "" : *path;
    if (name_ == spec.argv[0] && path_ == path_text) return program_;
    Result<std::string> program = find_program(spec.argv[0], spec.environment);
    if (!program) return program;
    name_ = spec.argv[0];
    path_ = path_text;
    program_ = *program;
    return program;
  }

 private:
  std::string name_, path_, program_;  // the last search
};

namespace {

// Every worker carries the token, by which the orphan sweep and the reaper process recognise it.
std::vector<std::string> with_token(const std::vector<std::string>& environment,
                                    const std::string& token) {
  std::vector<std::string> result = environment;
  const bool has_token = std::ranges::any_of(
      result, [](const std::string& entry) { return entry.starts_with("CPPRUN_TOKEN="); });
  if (!has_token) result.push_back("CPPRUN_TOKEN=" + token);
  return result;
}

// What is the same for all workers of a round.
struct RoundPlan {
  std::string token;
  rlimit descriptors{};
  LogFiles files;
  int cgroup = -1;
  size_t workers = 0;
  WorkerFork fork;
};

Result<Spawned> start_worker(const RoundPlan& round, const std::string& program,
                             StartingWorker& worker, SpawnContext& context, StartTicket& ticket) {
  const WorkerSpec& spec = worker.spec;
  Result<WorkerStreams> ends = open_streams(spec, round.workers == 1, round.files);
  if (!ends) return ends.error();
  const std::vector<std::string> environment = with_token(spec.environment, round.token);
  SpawnPlan plan{.program = program, .argv = spec.argv, .environment = environment};
  plan.out = ends->out.child;
  plan.err = ends->err.child;
  plan.cgroup = round.cgroup;
  plan.descriptors = &round.descriptors;
  plan.cpus = spec.cpus;
  plan.ignored = spec.ignored;
  plan.ticket = &ticket;
  // After a cancelled start the host may be gone, and its cgroup folder closed.
  if (ticket.is_cancelled()) return system_error("cannot start " + program, ECANCELED);
  ForkAttempt attempt = round.fork ? round.fork(plan) : ForkAttempt{};
  std::optional<Spawned>& forked = attempt.worker;
  worker.spawn_reason = forked ? std::nullopt : std::optional(attempt.reason);
  if (!forked && ticket.is_cancelled()) return system_error("cannot start " + program, ECANCELED);
  Result<Spawned> spawned = forked ? Result<Spawned>(std::move(*forked)) : context.spawn(plan);
  if (!spawned) return spawned;
  for (StreamFds* each : {&ends->out, &ends->err}) {
    if (each->ours) worker.streams.push_back(std::move(*each->ours));
  }
  return spawned;
}

// The agent sends them to the worker when the loop takes the outcome.
Result<Spawned> open_survivor_streams(const RoundPlan& round, StartingWorker& worker) {
  Result<WorkerStreams> ends = open_streams(worker.spec, round.workers == 1, round.files);
  if (!ends) return ends.error();
  worker.out.reset(::fcntl(ends->out.child, F_DUPFD_CLOEXEC, 3));
  worker.err.reset(::fcntl(ends->err.child, F_DUPFD_CLOEXEC, 3));
  if (!worker.out.is_open() || !worker.err.is_open()) {
    return system_error("cannot open the output of a worker", errno);
  }
  for (StreamFds* each : {&ends->out, &ends->err}) {
    if (each->ours) worker.streams.push_back(std::move(*each->ours));
  }
  return Spawned{};
}

}  // namespace

WorkerStarter::WorkerStarter(std::string token)
    : token_(std::move(token)), search_(std::make_shared<ProgramSearch>()) {
  ::getrlimit(RLIMIT_NOFILE, &descriptors_);
}

std::vector<SpawnThread::Start> WorkerStarter::make(
    const std::vector<std::shared_ptr<StartingWorker>>& workers, const LogFiles& files, int cgroup,
    const WorkerFork& fork) const {
  const auto round = std::make_shared<const RoundPlan>(
      RoundPlan{token_, descriptors_, files, cgroup, workers.size(), fork});
  std::vector<SpawnThread::Start> starts;
  for (const std::shared_ptr<StartingWorker>& worker : workers) {
    CPPRUN_CHECK(!worker->spec.argv.empty());
    starts.push_back([round, worker, search = search_](SpawnContext& context,
                                                       StartTicket& ticket) -> Result<Spawned> {
      const bool is_new = worker->survivor == 0;
      Result<std::string> program = is_new ? search->find(worker->spec) : std::string();
      if (!program) return program.error();
      Result<Spawned> spawned = is_new ? start_worker(*round, *program, *worker, context, ticket)
                                       : open_survivor_streams(*round, *worker);
      if (!spawned && is_out_of_descriptors(spawned.error())) {
        return descriptor_error(round->workers);
      }
      return spawned;
    });
  }
  return starts;
}

}  // namespace cpprun
