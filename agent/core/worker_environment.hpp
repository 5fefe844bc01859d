// Arguments, environment and line prefix of each worker of a round. Pure functions of the
// configuration and the rank assignment. The contract is torchrun's:
// docs/reference/supervision.md, "What a worker sees".
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

// Values that the daemon adds to the configuration.
struct LaunchContext {
  std::string error_file;  // TORCHELASTIC_ERROR_FILE; may be empty
  std::string store;       // CPPRUN_STORE: "host:port" of the round's store
  std::string token;       // CPPRUN_TOKEN
  std::string agent;       // CPPRUN_AGENT: name of the worker channel's socket; empty: none
  std::string host_name;   // for line prefixes
};

// The restart count in worker environments and log folder names: all restarts, whichever budget
// they are charged to.
int64_t restarts_of(const control::RankAssignment& assignment);

std::vector<std::string> worker_argv(const WorkerConfig& config, int local_rank);

// --debug-rank: the same command, but the process first stops itself. It executes the program after
// a debugger or SIGCONT continues it.
std::vector<std::string> after_debugger(const std::vector<std::string>& argv);

// The complete environment, "NAME=value": the launcher's own with the contract's variables
// replaced.
std::vector<std::string> worker_environment(const AgentConfig& config,
                                            const control::RankAssignment& assignment,
                                            const LaunchContext& context, int local_rank);

// The part of it that may differ between the rounds of a run, for a worker that stays alive. "NAME"
// alone: the round does not have this variable.
std::vector<std::string> round_variables(const AgentConfig& config,
                                         const control::RankAssignment& assignment,
                                         const LaunchContext& context, int local_rank);

// What the environments of all workers have in common, in every round; the preload process gets it.
std::vector<std::string> common_environment(const AgentConfig& config, const std::string& token);

// Workers of a cpprun that runs inside a worker of another cpprun carry the tokens of both, so that
// both can find them.
std::string chain_token(const AgentConfig& config, const std::string& own);

}  // namespace cpprun::agent
