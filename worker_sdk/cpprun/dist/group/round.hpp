// Process groups of a process that takes part in several rounds. Private to the SDK; for
// cpprun::elastic.
#pragma once

#include <cstdint>

#include <c10/core/Device.h>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {

// This process is in this round: the keys of its groups contain the number, and their connections
// are known to wake_round(). Call it at the begin of each round, when no group exists.
void begin_round(int64_t round);

// Ends the connections of the groups of this round, also of those that are being made, and aborts
// the communicators of NCCL: each later collective of them fails. Any thread.
void wake_round();

// Whether a collective of this group can end with undefined results and without an error: one of
// NCCL, which runs on the GPU, when wake_round() aborts it.
bool needs_round_check(const ProcessGroup& group);
// Waits until the device has done what its current stream contains. Throws DistNetworkError after
// wake_round(): the results of collectives may be undefined.
void check_round(c10::Device device);

// Destroys all groups of this round. A collective that still runs is left to its thread.
void leave_round();

}  // namespace cpprun::dist
