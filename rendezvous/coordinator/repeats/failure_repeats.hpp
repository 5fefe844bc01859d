// Decides whether another restart can help, from the failures of a job's rounds and the progress
// that the rounds made. The state is control::PastFailures, which travels in the rank assignments,
// so that a later coordinator continues with it.
//
// A core: no I/O, no clock.
#pragma once

#include <cstdint>
#include <string>

#include "common/failure/worker_exit.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// What the rounds of a job have reached so far, as its nodes report it.
struct JobProgress {
  int64_t step = -1;      // the last that any worker finished; -1: none reports steps
  int64_t snapshot = -1;  // step of the newest complete snapshot; -1: none is known
};

// The rounds have got further than `past` knows.
bool has_progressed(const JobProgress& made, const control::PastFailures& past);

// A round is over, and no worker failed in it.
void note_progress(const JobProgress& made, control::PastFailures& past);

// A round is over, and this is its root cause. Returns why another try cannot help; "": it may.
std::string note_failure(const RootCause& cause, const JobProgress& made,
                         control::PastFailures& past);

// Agents and etcd may hold anything: numbers and texts of any size become harmless ones.
control::PastFailures sane(control::PastFailures past);

}  // namespace cpprun
