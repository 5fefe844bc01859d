// Texts for the user about an agent that waits for its job, cannot join it, or resumes from another
// snapshot. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

// What a node that was in no round yet waits for. `last_wait`: the coordinator's last text about
// the wait; may be empty.
std::string waiting_text(bool is_connected, const std::string& last_wait);

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
  std::string lost;           // the node whose loss ended the last round, and how; may be empty
  bool has_finished = false;  // the workers of this node finished; the job's result is unknown
};
std::string join_timeout_text(const JoinTimeout& why);

// Why a rank assignment for a node with this many workers cannot be right; "" if it can. Ranks that
// are out of range would end in the programs' collectives, far from the cause.
std::string wrong_ranks_text(const control::RankAssignment& assignment, int64_t nproc);

}  // namespace cpprun::agent
