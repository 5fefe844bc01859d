// The fingerprint of a worker's failure, to detect whether a restart brought the same failure
// again; and the kinds of failure that no restart can heal. Pure.
#pragma once

#include <string>

#include "common/failure/worker_exit.hpp"

namespace cpprun {

// Equal for workers that failed in the same way, on whichever rank: the exception's type, the first
// line of its message without digits (pids, addresses, times) and the innermost frame of the
// script; else the signal or the exit code. At most limits::kFingerprintBytes. "" for a worker that
// only lost a peer, since the failure is the peer's. Requires: `end` is a failure.
std::string fingerprint_of(const WorkerExit& end);

// Whether the worker could not import a module, or its program has a syntax error.
bool is_import_or_syntax_error(const WorkerExit& end);

}  // namespace cpprun
