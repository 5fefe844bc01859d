// FailureClass: in one word, what kind of end a worker had. The failure summary shows it as
// `class=...`, events carry it, and hints are chosen by it. Pure.
#pragma once

#include <string>

#include "common/failure/worker_exit.hpp"

namespace cpprun {

enum class FailureClass {
  UserError,     // ended with a code of its own, or an exception
  Crash,         // a signal that a program's own fault brings (SIGSEGV, SIGABRT, ...)
  Killed,        // another signal, from outside
  OutOfMemory,   // the kernel's OOM killer, or memory that was asked for in vain
  LostPeer,      // says itself that another worker's end was the cause
  StartFailure,  // never ran: the program could not be started
  LostNode,      // its node went
  Hang,          // stood still, and was stopped for it
};

// "user_error", "crash", "killed", "out_of_memory", "lost_peer", "start_failure", "lost_node",
// "hang".
const char* name_of(FailureClass kind);

// By how it ended and what it said. Requires: a failure.
FailureClass classify(const WorkerExit& end);

// The worker's own last word: the message of its error file, else the last line on its stderr that
// says something (an exception rather than what the interpreter prints after it). "" if none.
std::string error_text(const WorkerExit& end);

// Two ends with the same signature ended in the same way: class, code, and own words without their
// numbers (pids, addresses, times).
std::string signature_of(const WorkerExit& end);

// Whether the worker died before it can have done any work: its first limits::kStartUp.
bool is_startup_failure(const WorkerExit& end);

}  // namespace cpprun
