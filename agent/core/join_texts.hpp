// Texts for the user about an agent that waits for its job, cannot join it, or resumes from another
// snapshot. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "agent/core/effects.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

// The term of the coordinator is older than that of one before it.
inline constexpr const char* kOlderTermText =
    "the coordinator has an older term than one before it; was the clock of its host set back?";

// What a node that was in no round yet waits for. `last_wait`: the coordinator's last text about
// the wait; may be empty.
std::string waiting_text(bool is_connected, const std::string& last_wait);

// For the coordinator's message that the agent waits. `last_why`: of the message before. A spare
// node may wait for as long as the job runs and shows no other sign of life, so its user sees why;
// so does the user of a job whose next round is delayed.
LogEvent wait_event(const control::Wait& wait, const std::string& last_why);

// The coordinator refused the agent of `hello`. With an occupant another job occupies the endpoint:
// the user gave no --rdzv-id, and both jobs have the default one.
std::string refused_text(const control::Refused& refused, const control::Hello& hello,
                         const std::string& endpoint);

// The workers could not load the snapshot of step `chosen`. `step`: the one that training continues
// from; -1: it begins anew.
std::string fell_back_text(int64_t chosen, int64_t step);

struct JoinTimeout {
  Duration timeout{};
  bool is_connected = false;
  std::string last_wait;      // as for waiting_text()
  int64_t missing_nodes = 0;  // as in control::Wait
  std::string lost;           // the node whose loss ended the last round, and how; may be empty
  bool has_finished = false;  // the workers of this node finished; the job's result is unknown
};
std::string join_timeout_text(const JoinTimeout& why);

// Why a rank assignment for a node with this many workers cannot be right; "" if it can. Ranks that
// are out of range would end in the programs' collectives, far from the cause.
std::string wrong_ranks_text(const control::RankAssignment& assignment, int64_t nproc);

}  // namespace cpprun::agent
