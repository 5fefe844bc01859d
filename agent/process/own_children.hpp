// Children of the agent that are no workers (the guardian, helper tools): the sweep neither reaps
// nor ends them. Thread-safe; one list per process, because children belong to the process.
#pragma once

namespace cpprun {

void spare_child(int pid);
void unspare_child(int pid);  // after it was reaped
bool is_spared(int pid);

}  // namespace cpprun
