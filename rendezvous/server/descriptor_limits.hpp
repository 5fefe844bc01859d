// How many connections the descriptors of this process allow, and the warning when they run out.
#pragma once

#include <cstddef>

namespace cpprun {

// At most `wanted`, and so few that some descriptors stay free. Reads the limit each time, since it
// may be raised.
size_t connections_within_limit(size_t wanted);

// Logs once per process.
void log_out_of_descriptors();

}  // namespace cpprun
