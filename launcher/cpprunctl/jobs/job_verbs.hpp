// The verbs of cpprunctl that look at running jobs, and those that change them. Each prints what it
// found on stdout; an Error is for stderr.
#pragma once

#include <optional>
#include <string>

#include "common/result.hpp"

namespace cpprun {

struct JobOptions {
  std::string job;       // run id; empty: the only one here
  std::string endpoint;  // of a rendezvous port: look there instead of asking agents here
  std::string node;
  std::string signal;
  std::optional<int64_t> rank{};
  int64_t lines = 10;
  std::string since;   // of logs: a time in words; empty: only the last lines
  double every_s = 1;  // between two frames of top
  int64_t frames = 0;  // of top; 0: until the job ends
  bool is_json = false;
  bool follows = false;
  bool is_resumable = false;
  bool is_here = false;  // stop: only what is on this machine
  int64_t nodes = 0;     // scale
};

// Jobs with an agent on this machine.
Status ps(const JobOptions& options);
// One job: its nodes, and the workers that are here.
Status status(const JobOptions& options);
// The same, again and again, until the job ends: a screen on a terminal, else table after table.
Status top(const JobOptions& options);
// What status prints; with the slowest rank at its end, and what top shows besides: the GPUs of
// this machine. Nothing is printed.
Result<std::string> status_text_of(const JobOptions& options, bool is_top = false);
// The pid of a rank here.
Status pid(const JobOptions& options);
// The last lines of workers' log files here, or what was written since a time; with `follows` also
// what comes, until the job ends.
Status logs(const JobOptions& options);
// What workers here are doing: the stack of one rank, or of all. Nothing is stopped.
Status stacks(const JobOptions& options);
// A signal to one rank here, or to all workers here.
Status send_signal(const JobOptions& options);

// Admin commands for the whole job, which its coordinator carries out (admin_commands.cpp). All
// workers are started anew; those that can save do so first.
Status restart(const JobOptions& options);
// A node leaves, wherever it is: the workers of all nodes save first.
Status drain(const JobOptions& options);
// All nodes leave; with `is_here` those of this machine, and nobody else is asked.
Status stop(const JobOptions& options);
// The job runs on `nodes` nodes from now on, or on as many of them as there are.
Status scale(const JobOptions& options);

}  // namespace cpprun
