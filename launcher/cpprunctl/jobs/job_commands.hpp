// The commands of cpprunctl that inspect or change running jobs. Each prints its result on stdout;
// the caller prints an Error on stderr.
#pragma once

#include <optional>
#include <string>

#include "common/result.hpp"
#include "launcher/cpprunctl/tls_options.hpp"

namespace cpprun {

struct JobCommandOptions {
  std::string job;       // run id; empty: the only job here
  std::string endpoint;  // of a coordinator: ask it instead of the agents here
  std::string node;
  std::string signal;
  std::optional<int64_t> rank{};
  int64_t lines = 10;
  bool has_lines = false;     // of logs: the user has given `lines`
  bool is_all_nodes = false;  // of logs: read through the coordinator
  std::string since;          // of logs: a time specification; empty: only the last lines
  double every_s = 1;         // between two frames of top
  int64_t frames = 0;         // of top; 0: until the job ends
  std::string sort = "rank";  // of top: the order of the workers
  bool is_all = false;        // ps: finished jobs too
  std::string log_dir;        // ps -a: a folder of run folders besides the temporary one
  bool is_json = false;
  bool follows = false;
  bool is_resumable = false;
  bool is_here = false;  // stop: only this machine's agents
  int64_t nodes = 0;     // scale
  std::string reason;    // exclude; for people
  TlsOptions tls{};      // with an endpoint
};

// Lists the jobs with an agent on this machine.
Status ps(const JobCommandOptions& options);
// Shows one job: its nodes, and the workers on this machine.
Status status(const JobCommandOptions& options);
// Shows the hosts of a job with their faults, and which are excluded.
Status nodes(const JobCommandOptions& options);
// Repeats the status until the job ends: a full screen on a terminal, else one table after another.
// At its end it prints the outcome.
Status top(const JobCommandOptions& options);
// The text that status prints, with the slowest rank at its end. With `is_top` it includes the GPUs
// of this machine. Printable, but for colours. Prints nothing.
Result<std::string> status_text_of(const JobCommandOptions& options, bool is_top = false);
// Prints how a job has used its time: of the running job, else from the events in its run folder.
Status goodput(const JobCommandOptions& options);
// Prints the pid of a rank on this machine.
Status pid(const JobCommandOptions& options);
// Prints the last lines of the workers' log files here, or everything since a time; with `follows`
// also new lines, until the job ends. With `is_all_nodes`: of all nodes, and all lines.
Status logs(const JobCommandOptions& options);
// Prints the call stack of one rank here, or of all. The workers keep running.
Status stacks(const JobCommandOptions& options);
// Sends a signal to one rank here, or to all workers here.
Status send_signal(const JobCommandOptions& options);

// Admin commands for the whole job, which the coordinator executes (admin_commands.cpp). restart
// starts all workers anew; workers that can save a snapshot do so first.
Status restart(const JobCommandOptions& options);
// Removes a node, on any machine, from the job; the workers of all nodes save first.
Status drain(const JobCommandOptions& options);
// Ends the job on all nodes; with `is_here` only on this machine, without the coordinator.
Status stop(const JobCommandOptions& options);
// Leaves a host out of all further rounds; a spare takes its place.
Status exclude(const JobCommandOptions& options);
// Takes an excluded host in again.
Status readmit(const JobCommandOptions& options);
// Sets the job's number of nodes; with fewer nodes available it runs on those.
Status scale(const JobCommandOptions& options);

}  // namespace cpprun
