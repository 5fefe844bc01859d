// glibc's malloc for training: the big buffers of a step stay in the process. Internal.
#pragma once

namespace cpprun::worker {

// By default glibc gives every freed block above 128 KiB back to the kernel and takes fresh, zeroed
// pages for the next step. Does nothing with CPPRUN_MALLOC=default, with MALLOC_... or
// GLIBC_TUNABLES settings of the user's own, and where malloc is not glibc's. Call it before
// threads are made. True: it changed the settings.
bool tune_malloc();

}  // namespace cpprun::worker
