// Staging: copies the contents of a snapshot into memory that training does not change. Training
// waits meanwhile. Private to snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpprun/snapshot/save/staged.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"

namespace cpprun::snapshot {

// Divides the shared storages among `writers`; copies no bytes yet (`mine` stays empty).
Staged plan(Contents& contents, int writers);
// Bytes of memory that the writer with index `place` (-1: not a writer) needs for its parts.
uint64_t bytes_of(const Staged& staged, int place);
// Copies the writer's parts into `memory`, aligned to archive::kBlock (large parts) or 64 bytes.
// Sets `mine`, and `crc32s` where the copy computes them.
void copy(const Contents& contents, int place, std::span<std::byte> memory, Staged& staged);

}  // namespace cpprun::snapshot
