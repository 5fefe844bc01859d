// The file into which this process writes the stack of its main thread when its agent sends
// kStackSignal: evidence of a hang, collected before the worker is killed. For the sources of
// cpprun/worker only.
#pragma once

#include "rendezvous/protocol/worker/worker_page.hpp"

namespace cpprun::worker {

// Creates the file, installs the handler and publishes both in `page`. Call it once. Does nothing
// if there is no descriptor left, or if the program handles the signal itself.
void publish_stack_file(WorkerPage& page);

}  // namespace cpprun::worker
