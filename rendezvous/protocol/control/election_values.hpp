// The two values of a job in etcd (docs/protocol.md, R18): its leader, and the state that outlives
// its coordinator. Encoded like control messages, without a frame.
//
// Any etcd client may have written them, so the decoders check size, nesting, types and ranges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::control {

// Value of leader_key(), bound to the leader lease: it exists as long as its coordinator leads.
struct Leader {
  NodeId node;          // the agent in the coordinator's process
  std::string address;  // numeric, or --local-addr; other nodes reach the coordinator here
  int64_t port = 0;
  bool operator==(const Leader&) const = default;
};

// Value of job_state_key(), under no lease. The coordinator writes it before it sends any agent
// what it holds; so no newer round runs, and no agent knows another outcome.
struct PersistedJobState {
  Term term;          // of the coordinator that wrote it
  Term first_term;    // of the coordinator with which the job began; 1: not known
  RoundNumber round;  // the newest; 0: none yet
  int64_t group_size = 0;
  int64_t host_rank = -1;  // group rank of the node in that coordinator's process; -1: not in it
  int64_t restart_count = 0;
  int64_t hang_restarts = 0;
  int64_t node_losses = 0;
  int64_t admin_restarts = 0;
  std::optional<int64_t> wanted_nodes{};
  std::optional<SnapshotName> resume{};  // from which the round resumed
  bool is_resume_fetched = false;        // some nodes of the round fetched it
  PastFailures past_failures{};
  std::optional<JobResult> decided{};
  std::optional<HostRecords> host_records{};
};

// "cpprun/<run id>/leader" and ".../job_state". Different run ids have different keys.
std::string leader_key(const std::string& run_id);
std::string job_state_key(const std::string& run_id);

// Defined in control_codec.cpp. The error describes the value; the caller adds the key.
std::string encode_leader(const Leader& leader);
std::string encode_job_state(const PersistedJobState& facts);
Result<Leader> decode_leader(std::string_view bytes);
Result<PersistedJobState> decode_job_state(std::string_view bytes);

}  // namespace cpprun::control
