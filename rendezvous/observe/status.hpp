// The coordinator's state as JSON, for /status. Field names are an interface (docs/protocol.md,
// "HTTP").
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/goodput/goodput.hpp"
#include "common/shown_state.hpp"
#include "rendezvous/coordinator/coordinator.hpp"

namespace cpprun {

// Only a standalone server (cpprunctl serve) reports these.
struct ServerStats {
  size_t connections = 0;
  size_t keys = 0;   // of its store
  size_t waits = 0;  // clients that wait for keys
};

std::string status_json(const Coordinator& coordinator,
                        const std::optional<ServerStats>& server = std::nullopt);

// "success", "stopped" (on request, resumable), "failure"; null while the job has no result.
const char* outcome_of(const Job& job);

// How the job has used its time, as its first node has reported it; nullopt: no report came yet.
// Counts of failures and restarts are not in it.
std::optional<Goodput> goodput_of(const Job& job);

// In the words that people see.
ShownState state_of(const Job& job);

// "recovering", "waiting_for_nodes", "running", "stopping", "finishing", "ended".
const char* name_of(Job::Phase phase);
// "idle", "starting", "running", "stopped", "done"; or "dead", "silent", "draining", "excluded".
const char* name_of(const Node& node);

}  // namespace cpprun
