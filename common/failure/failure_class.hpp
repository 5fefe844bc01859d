// FailureClass: the kind of a worker's failure. The failure summary shows it as `class=...`, events
// contain it, and it selects the hint. Pure.
#pragma once

#include <string>

#include "common/failure/worker_exit.hpp"

namespace cpprun {

enum class FailureClass {
  UserError,     // exited with a nonzero code, for instance after an exception
  Crash,         // a signal that the program's own fault raises (SIGSEGV, SIGABRT, ...)
  Killed,        // another signal, from outside
  OutOfMemory,   // the kernel's OOM killer, or a failed allocation
  LostPeer,      // its error shows that it lost the connection to another worker
  StartFailure,  // the program could not be started
  LostNode,      // its node was lost
  Hang,          // the agent found it hung and stopped it
};

// "user_error", "crash", "killed", "out_of_memory", "lost_peer", "start_failure", "lost_node",
// "hang".
const char* name_of(FailureClass kind);

// Classifies a failure by exit status and error text. Requires: `end` is a failure.
FailureClass classify(const WorkerExit& end);

// The worker's own error: the message of its error file, else of its stderr the exception that
// ended it, the error of its fault dump, or the last line that is not blank. "" if there is none; a
// signal other than SIGABRT and SIGINT is not explained by the last line.
std::string error_text(const WorkerExit& end);

// Equal for workers that failed in the same way: class, exit code, and error text without digits
// (pids, addresses, times).
std::string signature_of(const WorkerExit& end);

// Whether the worker died within limits::kStartUp, before it can have done any work.
bool is_startup_failure(const WorkerExit& end);

}  // namespace cpprun
