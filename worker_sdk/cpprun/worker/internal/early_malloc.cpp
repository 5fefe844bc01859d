// Tunes malloc before the constructors of any library run. LibTorch's, which register its
// operators, take 50 MiB in small blocks: from huge pages a sixth less CPU until main (0.17 s, then
// 0.14 s).
//
// Only executables have such functions, so nothing refers to this file but the linker option that
// worker_sdk/CMakeLists.txt gives to executables.
#include "cpprun/worker/internal/malloc_tuning.hpp"

namespace {

// getenv does not work yet.
void tune_first(int /*argc*/, char** /*argv*/, char** environment) {
  if (cpprun::worker::tune_malloc(environment)) cpprun::worker::grow_heap();
}

}  // namespace

extern "C" {
extern void (*const cpprun_early_malloc)(int, char**, char**);
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const cpprun_early_malloc)(int, char**, char**) = tune_first;
}
