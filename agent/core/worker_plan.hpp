// What each worker of a round is started with: arguments, environment, line prefix. Pure functions
// of the configuration and the world. The contract is torchrun's: docs/supervision.md, "What a
// worker sees".
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

// What only the daemon knows.
struct LaunchContext {
  std::string error_file;  // TORCHELASTIC_ERROR_FILE; may be empty
  std::string store;       // CPPRUN_STORE: "host:port" of the round's store
  std::string token;       // CPPRUN_TOKEN
  std::string agent;       // CPPRUN_AGENT: name of the agent's socket; empty: none
  std::string host_name;   // for prefixes
};

// The number of restarts that workers and log folders know: whatever they were charged to.
int64_t restarts_of(const control::RankAssignment& assignment);

std::vector<std::string> worker_argv(const WorkerConfig& config, int local_rank);

// --debug-rank: the same command, but the process stops itself first and becomes the program when a
// debugger or SIGCONT lets it go on.
std::vector<std::string> after_debugger(const std::vector<std::string>& argv);

// Complete, "NAME=value"; what the launcher itself inherited, with the contract's variables
// replaced.
std::vector<std::string> worker_environment(const AgentConfig& config,
                                            const control::RankAssignment& assignment,
                                            const LaunchContext& place, int local_rank);

// Before each console line of a tee'd stream.
std::string line_prefix(const AgentConfig& config, const control::RankAssignment& assignment,
                        const LaunchContext& place, int local_rank);

// --virtual-local-rank: the one device each worker may see, or why there are too few.
Status check_virtual_devices(const AgentConfig& config);

}  // namespace cpprun::agent
