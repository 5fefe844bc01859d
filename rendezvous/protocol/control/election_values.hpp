// What stands in etcd for a job (docs/protocol.md, R18): who leads it, and the facts that outlive
// its coordinator. Values are encoded as control messages are, without a frame.
//
// What is read is anybody's: size, nesting, types and ranges are checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::control {

// Value of leader_key(), under a lease: it is there as long as its coordinator is in charge.
struct Leader {
  NodeId node;          // the agent in the coordinator's process
  std::string address;  // numeric, or --local-addr: where others reach the coordinator
  int64_t port = 0;
  bool operator==(const Leader&) const = default;
};

// Value of job_state_key(), under no lease. Written before any agent hears of what it says: no
// round runs that is newer, and no outcome was told but this one.
struct PersistedJobState {
  Term term;          // of the coordinator that wrote it
  RoundNumber round;  // the newest; 0: none was formed
  int64_t group_size = 0;
  int64_t host_rank = -1;  // group rank of the node in that coordinator's process; -1: not in it
  int64_t restart_count = 0;
  int64_t hang_restarts = 0;
  int64_t admin_restarts = 0;
  std::optional<int64_t> wanted_nodes{};
  std::optional<SnapshotName> resume{};  // what the round began with
  bool is_resume_fetched = false;        // by some of its nodes
  std::optional<JobResult> decided{};
};

// "cpprun/<run id>/leader" and ".../job_state". Different run ids have different keys.
std::string leader_key(const std::string& run_id);
std::string job_state_key(const std::string& run_id);

// In control_codec.cpp. Errors say what is wrong with the value; the caller names the key.
std::string encode_leader(const Leader& leader);
std::string encode_job_state(const PersistedJobState& facts);
Result<Leader> decode_leader(std::string_view bytes);
Result<PersistedJobState> decode_job_state(std::string_view bytes);

}  // namespace cpprun::control
