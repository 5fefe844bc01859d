/// @file
/// Environment: what a launcher (cpprun or torchrun) passes to a worker, as one struct.
/// docs/reference/supervision.md describes the variables, docs/reference/worker.md the defaults.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/result.hpp"

namespace cpprun::worker {

/// Ranks and sizes as torchrun defines them: "group" means node.
struct Environment {
  int rank = 0;                  ///< RANK, 0 to world_size - 1
  int local_rank = 0;            ///< LOCAL_RANK: rank on this node
  int world_size = 1;            ///< WORLD_SIZE
  int local_world_size = 1;      ///< LOCAL_WORLD_SIZE
  int group_rank = 0;            ///< GROUP_RANK: number of this node
  int group_world_size = 1;      ///< GROUP_WORLD_SIZE: number of nodes
  int role_rank = 0;             ///< ROLE_RANK; default: rank
  int role_world_size = 1;       ///< ROLE_WORLD_SIZE; default: world_size
  std::string role;              ///< ROLE_NAME
  std::string master_addr;       ///< MASTER_ADDR; empty: not set
  int master_port = 0;           ///< MASTER_PORT, 0 to 65535; 0: not set
  int restart_count = 0;         ///< TORCHELASTIC_RESTART_COUNT: restarts before this round
  int max_restarts = 0;          ///< TORCHELASTIC_MAX_RESTARTS
  std::string run_id;            ///< TORCHELASTIC_RUN_ID
  bool use_agent_store = false;  ///< TORCHELASTIC_USE_AGENT_STORE
  std::string error_file;        ///< TORCHELASTIC_ERROR_FILE; empty: none
  int64_t round = 0;             ///< CPPRUN_ROUND
  std::string store;         ///< CPPRUN_STORE: host:port of the round's store; empty under torchrun
  std::string agent;         ///< CPPRUN_AGENT: name of the agent's socket; empty: no agent
  std::string resume_from;   ///< CPPRUN_RESUME_FROM
  std::string snapshot_dir;  ///< CPPRUN_SNAPSHOT_DIR
  std::string faults;        ///< CPPRUN_FAULTS
  bool is_launched = false;  ///< RANK and WORLD_SIZE are set
};

/// Returns the value of a variable, or nothing if it is not set.
using Lookup = std::function<std::optional<std::string>(const char* name)>;
/// The variable of this process, read at each call.
std::optional<std::string> own_variable(const char* name);

/// Parses the variables that `lookup` returns. Error (BadValue): names the variable, its value and
/// what is expected. If neither RANK nor WORLD_SIZE is set, the world size is 1; one without the
/// other is an error, because the program would hang.
Result<Environment> parse_environment(const Lookup& lookup);
/// The environment of this process, parsed at the first call; later changes have no effect until
/// read_environment_again(). Any thread. The result is valid as long as the process lives.
const Result<Environment>& environment();
/// For a process that has entered another round: parses the variables anew.
void read_environment_again();
/// The same as environment(), or a world of one if the variables are wrong, for callers that need
/// not report that.
const Environment& environment_or_default();

}  // namespace cpprun::worker
