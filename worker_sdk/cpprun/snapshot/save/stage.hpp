// Staging: the contents of a snapshot copied into memory that training does not touch. What this
// costs is the pause of training. Private to snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpprun/snapshot/save/staged.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"

namespace cpprun::snapshot {

// Where everything will be, without its bytes: `mine` is empty. Shared storages are dealt to
// `writers`.
Staged plan(Contents& contents, int writers);
// Bytes of memory that the writer at `place` (-1: none) needs for its parts.
uint64_t bytes_of(const Staged& staged, int place);
// Copies them into `memory`, each at a multiple of a block or 64 bytes, and sets `mine`, and their
// crc32s where the copy finds them.
void copy(const Contents& contents, int place, std::span<std::byte> memory, Staged& staged);

}  // namespace cpprun::snapshot
