// Helpers are children of the agent that are no workers: the reaper process, the preload process,
// external tools. The orphan sweep neither reaps nor signals them, nor children in their sessions.
// Thread-safe; one list per process.
//
// HelperStart: a helper that another thread than the sweep's is about to spawn. The sweep could see
// the new child before its parent knows the pid. So the child writes its pid into the ticket of the
// start. Until then the sweep spares every child that it does not know.
#pragma once

#include "agent/process/spawn/start_ticket.hpp"

namespace cpprun {

void register_helper(int pid);
void unregister_helper(int pid);  // call after it is reaped
bool is_helper(int pid);          // includes children that are being started

class HelperStart {
 public:
  // From before the spawn until the helper is registered or the spawn has failed. `ticket` must
  // outlive this object.
  explicit HelperStart(const StartTicket& ticket);
  ~HelperStart();
  HelperStart(const HelperStart&) = delete;

  // A helper may exist whose pid is not known yet.
  static bool is_any_unnamed();

 private:
  const StartTicket& ticket_;
};

}  // namespace cpprun
