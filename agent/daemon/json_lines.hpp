// The JSON that a run writes: lines of events.jsonl, and the error file it hands up.
// docs/supervision.md, "Events".
#pragma once

#include <string>

#include "agent/core/effects.hpp"
#include "common/worker_end.hpp"
#include "rendezvous/protocol/control.hpp"

namespace cpprun::json_lines {

std::string round_started(WallTime at, const control::World& world);
std::string worker_ended(const WorkerEnd& end);
std::string finished(WallTime at, const agent::Finish& finish);

// Copies the root cause's error file to the launcher's own (torchelastic nests this way), adding
// the worker's exit code in the nested form. A failure is said as a warning.
void copy_error_file(const WorkerEnd& root, const std::string& to);

}  // namespace cpprun::json_lines
