// The file into which this process writes the stack of its main thread when its agent asks for it
// by kStackSignal: evidence of a hang, before it is ended. For the worker's own sources.
#pragma once

#include "rendezvous/protocol/worker/worker_page.hpp"

namespace cpprun::worker {

// Once. Without room for a file, or where the program handles the signal itself, nothing is
// offered.
void offer_stack(WorkerPage& page);

}  // namespace cpprun::worker
