#include "launcher/cpprunctl/command_line/job_commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "launcher/cpprunctl/command_line/validators.hpp"
#include "launcher/cpprunctl/events/events.hpp"
#include "launcher/cpprunctl/jobs/job_commands.hpp"

namespace cpprun::ctl {
namespace {

class JobCommands {
 public:
  JobCommands(CLI::App& app, RunCommand& run) : app_(app), run_(run) {}

  void add_status_commands() {
    CLI::App* ps = add("ps", "List the jobs of this machine", cpprun::ps);
    ps->add_flag("-a,--all", options_->is_all,
                 "finished jobs too, if their run folder was kept in the temporary folder");
    ps->add_option("--log-dir", options_->log_dir,
                   "finished jobs too, with the run folders in this folder");
    CLI::App* status =
        add("status", "Show one job: its nodes, and the workers here", cpprun::status);
    add_job(status);
    status->add_option("--rdzv-endpoint", options_->endpoint,
                       "HOST:PORT of a job elsewhere; only its nodes are known there");
    CLI::App* nodes = add("nodes", "List the hosts of a job: their faults, and which are excluded",
                          cpprun::nodes);
    add_job(nodes);
    nodes->add_option("--rdzv-endpoint", options_->endpoint, "HOST:PORT of a job elsewhere");
    CLI::App* pid = add("pid", "Print the pid of a worker here", cpprun::pid);
    pid->add_option("rank,--rank", options_->rank, "its global rank")->required();
    add_job_option(pid);
    for (CLI::App* command : {ps, status, nodes, pid}) {
      command->add_flag("--json", options_->is_json, "print JSON");
    }
  }

  void add_top() {
    CLI::App* top = add("top", "Show the status of a job, live, until it ends", cpprun::top);
    add_job(top);
    top->add_option("-d,--delay", options_->every_s, "seconds between two updates")
        ->check(within(0.1, 3600))
        ->capture_default_str();
    top->add_option("--sort", options_->sort, "the order of the workers: rank, step, time, memory")
        ->check(CLI::IsMember({"rank", "step", "time", "memory"}))
        ->capture_default_str();
    top->add_option("-n,--count", options_->frames, "how many updates; 0: until the job ends")
        ->check(from_zero());
  }

  void add_logs() {
    CLI::App* logs =
        add("logs", "Print the log files of workers here, or of all nodes of a job", cpprun::logs);
    logs->add_option("--rank", options_->rank, "only this global rank");
    logs->add_option("--node", options_->node, "only this node's, where several run here");
    CLI::Option* lines =
        logs->add_option("-n,--lines", options_->lines,
                         "how many lines of each file; with --all-nodes without it: all");
    lines->check(from_zero())->capture_default_str();
    lines->each([options = options_](const std::string&) { options->has_lines = true; });
    CLI::Option* since = logs->add_option(
        "--since", options_->since,
        "from this time on, earlier rounds included: 30s, 5m, 2h, 1d ago, 06:14, or "
        "2026-11-22T06:14:13");
    logs->add_flag("-f,--follow", options_->follows, "continue until the job ends");
    CLI::Option* all_nodes =
        logs->add_flag("--all-nodes", options_->is_all_nodes,
                       "of all nodes, earlier rounds included; needs CPPRUN_ADMIN_TOKEN");
    since->excludes(all_nodes);
    logs->add_option("--endpoint", options_->endpoint,
                     "HOST:PORT of the job's rendezvous, instead of an agent here")
        ->needs(all_nodes);
    add_tls_options(logs, options_->tls);
    add_job(logs);
  }

  void add_stacks() {
    CLI::App* stacks = add("stacks", "Print the call stacks of workers here", cpprun::stacks);
    stacks->add_option("--rank", options_->rank, "only of this global rank");
    stacks->add_option("--node", options_->node, "only of this node, where several run here");
    stacks->add_flag("--json", options_->is_json, "print JSON");
    add_job(stacks);
  }

  void add_goodput() {
    CLI::App* goodput =
        add("goodput", "Show how a job has used its time: training, and what was lost",
            cpprun::goodput);
    goodput->add_option("job", options_->job,
                        "its run id, run folder or --log-dir; else the newest job that runs here");
    goodput->add_flag("--json", options_->is_json, "print JSON");
  }

  void add_signal() {
    CLI::App* signal = add("signal", "Send a signal to workers here", cpprun::send_signal);
    signal->add_option("signal", options_->signal, "USR1, SIGUSR1, 10 ...")->required();
    signal->add_option("--rank", options_->rank, "only to this global rank");
    add_job_option(signal);
  }

  // The coordinator executes these.
  void add_admin_commands() {
    CLI::App* restart = add("restart", "Start all workers of a job anew", cpprun::restart);
    add_job(restart);
    CLI::App* drain = add("drain", "Let a job save, and continue without one node", cpprun::drain);
    drain->add_option("node", options_->node, "its name, or its group rank")->required();
    add_job_option(drain);
    CLI::App* scale = add("scale", "Let an elastic job run on more or fewer nodes", cpprun::scale);
    scale->add_option("nodes", options_->nodes, "how many, within its --nnodes=MIN:MAX")
        ->required();
    add_job_option(scale);
    CLI::App* stop = add("stop", "Stop all nodes of a job", cpprun::stop);
    stop->add_flag("--resumable", options_->is_resumable,
                   "let workers save first; the same command then continues (as SIGTERM does)");
    CLI::Option* here =
        stop->add_flag("--here", options_->is_here, "only the nodes that are on this machine");
    add_job(stop);
    CLI::App* exclude = add("exclude", "Leave a host out of all further rounds", cpprun::exclude);
    exclude->add_option("host", options_->node, "its name, or the group rank of its agent")
        ->required();
    exclude->add_option("--reason", options_->reason, "why, for people");
    add_job_option(exclude);
    CLI::App* readmit = add("readmit", "Take an excluded host in again", cpprun::readmit);
    readmit->add_option("host", options_->node, "its name")->required();
    add_job_option(readmit);
    for (CLI::App* command : {restart, drain, scale, exclude, readmit, stop}) {
      command->add_option("--endpoint", options_->endpoint,
                          "HOST:PORT of a job elsewhere; needs CPPRUN_ADMIN_TOKEN, as its "
                          "coordinator was started with");
      add_tls_options(command, options_->tls);
    }
    here->excludes("--endpoint");
  }

 private:
  using Function = Status (*)(const JobCommandOptions&);

  CLI::App* add(const char* name, const char* help, Function function) {
    CLI::App* command = app_.add_subcommand(name, help);
    command->callback([&run = run_, options = options_, function] {
      run = [options, function] { return exit_code_of(function(*options)); };
    });
    return command;
  }

  void add_job(CLI::App* command) {
    command->add_option("job", options_->job,
                        "its run id (--rdzv-id) or a unique beginning; needed where several run");
  }

  void add_job_option(CLI::App* command) {
    command->add_option("--job", options_->job,
                        "run id of the job, or a unique beginning; needed where several run");
  }

  CLI::App& app_;
  RunCommand& run_;
  const std::shared_ptr<JobCommandOptions> options_ = std::make_shared<JobCommandOptions>();
};

void add_events(CLI::App& app, RunCommand& run) {
  const auto options = std::make_shared<EventsOptions>();
  CLI::App* events = app.add_subcommand("events", "Show what happened to a job on this machine");
  events->add_option("job", options->path,
                     "its run id or a unique beginning, its run folder or --log-dir; else the "
                     "newest job that runs here");
  events->add_flag("-f,--follow", options->follows, "continue until the run has finished");
  events->add_flag("-v,--verbose", options->is_verbose, "print how long each start took, too");
  events->add_flag("--json", options->is_json, "print JSON, one event a line");
  events->callback(
      [&run, options] { run = [options] { return exit_code_of(show_events(*options)); }; });
}

}  // namespace

void add_job_commands(CLI::App& app, RunCommand& run) {
  JobCommands commands(app, run);
  commands.add_status_commands();
  commands.add_top();
  commands.add_logs();
  commands.add_stacks();
  add_events(app, run);
  commands.add_goodput();
  commands.add_signal();
  commands.add_admin_commands();
}

}  // namespace cpprun::ctl
