// How far the descriptors of this process reach, and what people hear when that is not far enough.
#pragma once

#include <cstddef>

namespace cpprun {

// Of `wanted` connections, so many that some descriptors are left for others. Looked at anew each
// time: the limit may be raised.
size_t connections_within_limit(size_t wanted);

// Once per process: the text says all there is to do.
void log_out_of_descriptors();

}  // namespace cpprun
