// glibc's malloc for training: the big buffers of a step stay in the process. Internal.
#pragma once

#include <cstddef>

namespace cpprun::worker {

// By default glibc gives every freed block above 128 KiB back to the kernel and takes fresh, zeroed
// pages for the next step. Does nothing if `environment` (as of execve: NAME=VALUE, ended by null)
// has CPPRUN_MALLOC=default, or MALLOC_... or GLIBC_TUNABLES settings of the user's own, and where
// malloc is not glibc's. Call it before threads are made. True: it changed the settings.
bool tune_malloc(const char* const* environment);

// The heap grows at once by what it grows by later (64 MiB), and the kernel gives pages for the
// first `bytes`, at once instead of by a page fault each. After tune_malloc.
void fill_heap(size_t bytes);

}  // namespace cpprun::worker
