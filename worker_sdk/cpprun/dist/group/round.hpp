// Process groups of a process that lives through several rounds. Private to the SDK; for
// cpprun::elastic.
#pragma once

#include <cstdint>

namespace cpprun::dist {

// This process is in this round: the keys of its groups contain the number, and their connections
// are known to wake_round(). Call it at the begin of each round, when no group exists.
void begin_round(int64_t round);

// Ends the connections of the groups of this round, also of those that are being made: each
// collective of them fails. Any thread.
void wake_round();

// Destroys all groups of this round. A collective that still runs is left to its thread.
void leave_round();

}  // namespace cpprun::dist
