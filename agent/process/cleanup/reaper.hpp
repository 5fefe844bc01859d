// The reaper process: a small process in a session of its own that outlives the agent by the time
// it needs to clear up.
//
// When the agent ends in any way, kill -9 included, it kills everything that carries the agent's
// token (by cgroup.kill where a cgroup is in force, else by pidfd after reading /proc/*/environ).
// It also kills the workers, and only them, when the agent has let its deadline pass: a frozen
// agent must not leave a second world behind.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

class Reaper {
 public:
  // Forks the reaper process. Requires: called before the first thread is made. `cgroup` is the
  // folder of the agent's own cgroup or empty; it is removed at the end.
  static Result<std::unique_ptr<Reaper>> start(const std::string& token, const std::string& cgroup);
  ~Reaper();  // dismisses it and reaps it

  // Workers may live until then; Instant::never() when nobody worker leases this agent. Any thread
  // may call it.
  void set_deadline(Instant deadline);

  // Readable when the reaper process itself has died; then call renew(), which forks another one.
  int pidfd() const;
  int pid() const;
  Status renew();

  // Nothing is left to guard: it goes while the agent tidies up, and is reaped at the end.
  void dismiss();

 private:
  class Impl;
  explicit Reaper(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
