// Settings of glibc's malloc for training: the large buffers of a step stay in the process.
// Internal.
#pragma once

#include <cstddef>

namespace cpprun::worker {

// By default glibc returns every freed block above 128 KiB to the kernel and takes fresh, zeroed
// pages for the next step. Returns false and changes nothing if `environment` (NAME=VALUE strings,
// ended by null, as passed to execve) has CPPRUN_MALLOC=default, MALLOC_... or GLIBC_TUNABLES
// settings, or if malloc is not glibc's; returns true if it changed the settings. Call it before
// any thread starts.
bool tune_malloc(const char* const* environment);

// After tune_malloc: grows the heap by 64 MiB and has the kernel populate its first `bytes` bytes
// in one call instead of by page faults.
void fill_heap(size_t bytes);

}  // namespace cpprun::worker
