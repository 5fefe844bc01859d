// The first half of ProcessHost's inside: a round's beginning, and the hard end of everything.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/process/host_impl.hpp"
#include "agent/process/standard_streams.hpp"
#include "common/check.hpp"
#include "common/limits/agent.hpp"

namespace cpprun {
namespace {

bool is_out_of_descriptors(const Error& error) {
  return error.text.find(system_error("", EMFILE).text.substr(2)) != std::string::npos;
}

}  // namespace

ProcessHost::Impl::Impl(boost::asio::io_context& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      sweep_(options_.token),
      kill_timer_(loop, [this] { on_grace_over(); }),
      sweep_timer_(loop, [this] { look(); }),
      lines_timer_(loop,
                   [this] {
                     deliver();
                     settle();
                   }),
      child_signals_(loop, SIGCHLD),
      window_signals_(loop) {
  CPPRUN_CHECK(!options_.token.empty() && events_.on_end);
  fill_standard_streams();
  ::getrlimit(RLIMIT_NOFILE, &descriptors_);
  if (options_.use_cgroup) cgroup_ = Cgroup::make(options_.token);
  if (!options_.channel_name.empty()) open_channel();
}

ProcessHost::Impl::~Impl() = default;

Status ProcessHost::Impl::start(const std::vector<WorkerSpec>& specs) {
  CPPRUN_CHECK(is_quiet() && !specs.empty());
  sweep_.begin_round();
  oom_.begin_round();
  has_lines_.clear();
  if (channel_) channel_->begin_round(specs.size());
  is_stopping_ = false;
  killed_at_.reset();
  patience_ = limits::kKillPatience;
  said_stuck_at_ = Instant{};
  saving_.clear();
  traced_.clear();
  started_at_ = boot_now();
  started_ = specs.size();
  ready_ = 0;
  std::vector<OutputStream> streams;
  if (Status started = start_all(specs, streams); !started) {
    kill_everything();
    if (!workers_.empty()) run();  // until they have ended after all
    return started;
  }
  for (const OutputStream& stream : streams) {
    if (stream.is_stderr) has_lines_[stream.local_rank] = true;
  }
  const bool has_terminals =
      std::any_of(streams.begin(), streams.end(),
                  [](const OutputStream& stream) { return stream.is_terminal; });
  if (has_terminals && !std::exchange(has_terminals_, true)) watch_window();
  carry(std::move(streams));
  run();
  return {};
}

void ProcessHost::Impl::run() {
  is_running_ = true;
  guard_.emplace(loop_.get_executor());
  watch_children();
  for (auto& [pid, worker] : workers_) watch(worker);
  watch_killed();
}

Status ProcessHost::Impl::start_all(const std::vector<WorkerSpec>& specs,
                                    std::vector<OutputStream>& streams) {
  SharedLogFiles shared;
  SpawnGround ground;
  const bool is_alone = specs.size() == 1;
  for (const WorkerSpec& spec : specs) {
    Status started = passes_agent(spec, is_alone) ? open_output() : Status();
    if (started) started = start_one(spec, is_alone, ground, shared, streams);
    if (!started && is_out_of_descriptors(started.error())) return descriptor_error(specs.size());
    if (!started) return started;
  }
  return {};
}

Status ProcessHost::Impl::start_one(const WorkerSpec& spec, bool is_alone, SpawnGround& ground,
                                    SharedLogFiles& shared, std::vector<OutputStream>& streams) {
  CPPRUN_CHECK(!spec.argv.empty());
  Result<std::string> program = program_of(spec);
  if (!program) return program.error();
  Result<WorkerStreams> ends = open_streams(spec, is_alone, shared);
  if (!ends) return ends.error();

  const std::vector<std::string> environment = marked(spec.environment);
  SpawnPlan plan{.program = *program, .argv = spec.argv, .environment = environment};
  plan.out = ends->out.child;
  plan.err = ends->err.child;
  if (cgroup_) plan.cgroup = cgroup_->folder();
  plan.descriptors = &descriptors_;
  plan.cpus = spec.cpus;
  Result<Spawned> spawned = ground.spawn(plan);
  if (!spawned) return spawned.error();
  const int pid = spawned->pid;
  workers_.try_emplace(pid, loop_, std::move(*spawned), spec);
  sweep_.on_worker_started(pid, spec.local_rank);
  if (events_.on_start) events_.on_start(spec.local_rank, spec.rank, pid);
  for (StreamEnds* each : {&ends->out, &ends->err}) {
    if (each->ours) streams.push_back(std::move(*each->ours));
  }
  return {};
}

// All workers of a round usually run one program: it is looked up once.
Result<std::string> ProcessHost::Impl::program_of(const WorkerSpec& spec) {
  const auto path =
      std::find_if(spec.environment.begin(), spec.environment.end(),
                   [](const std::string& entry) { return entry.starts_with("PATH="); });
  const std::string path_text = path == spec.environment.end() ? "" : *path;
  if (found_name_ == spec.argv[0] && found_path_ == path_text) return found_program_;
  Result<std::string> program = find_program(spec.argv[0], spec.environment);
  if (!program) return program;
  found_name_ = spec.argv[0];
  found_path_ = path_text;
  found_program_ = *program;
  return program;
}

// Every worker carries the token: the sweep and the guardian know it by that.
std::vector<std::string> ProcessHost::Impl::marked(
    const std::vector<std::string>& environment) const {
  std::vector<std::string> result = environment;
  const bool has_token = std::any_of(result.begin(), result.end(), [](const std::string& entry) {
    return entry.starts_with("CPPRUN_TOKEN=");
  });
  if (!has_token) result.push_back("CPPRUN_TOKEN=" + options_.token);
  return result;
}

std::vector<StuckProcess> ProcessHost::Impl::kill_everything() {
  if (workers_.empty() && !is_running_) return {};
  sweep_.set_hard();
  on_grace_over();
  reap_killed(*killed_at_ + limits::kEndingTakes);
  return unended(Duration{});
}

void ProcessHost::Impl::reap_killed(Instant until) {
  for (auto next = workers_.begin(); next != workers_.end();) {
    WorkerProcess& worker = next->second;
    const Duration left = std::max(Duration{}, until - boot_now());
    const auto most = std::chrono::ceil<std::chrono::milliseconds>(left);
    if (!worker.wait_dead(static_cast<int>(most.count())) || !worker.has_status()) {
      ++next;
      continue;
    }
    worker.note_end(oom_);
    sweep_.on_worker_ended(worker.pid(), boot_now());
    worker.take_end();
    next = workers_.erase(next);
  }
  // Killed processes need a moment to end; only here, where nobody can wait for an event, it is
  // asked for.
  for (;;) {
    sweep_.look(boot_now(), cgroup_ ? &*cgroup_ : nullptr);
    if (sweep_.is_clean() || boot_now() >= until) return;
    ::poll(nullptr, 0, 1);
  }
}

}  // namespace cpprun
