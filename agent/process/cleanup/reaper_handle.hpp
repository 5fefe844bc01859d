// ReaperHandle: the agent's handle of the reaper process, a small process in a session of its own
// that outlives the agent and cleans up after it.
//
// When the agent ends in any way, kill -9 included, the reaper process kills every process that
// carries the agent's token: by cgroup.kill where there is a cgroup, otherwise by pidfd after
// reading /proc/*/environ. It also kills the workers, and only them, when the agent lets its
// deadline pass: a frozen agent must not keep workers of an old round alive.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

struct ReaperPage;

class ReaperHandle {
 public:
  // Forks the reaper process. Requires: this process has no second thread yet. `cgroup`: the folder
  // of the agent's cgroup, or empty; the reaper process removes it at its end.
  static Result<std::unique_ptr<ReaperHandle>> start(const std::string& token,
                                                     const std::string& cgroup);
  ~ReaperHandle();  // kills and reaps the reaper process

  // The end of the worker lease; Instant::never(): the agent needs none. Returns whether the reaper
  // process has killed the workers at the former one. One thread at a time may call it.
  bool set_deadline(Instant deadline);

  // Readable when the reaper process itself has died; the owner then calls renew(), which forks
  // another one. Once after start() and after each renew().
  UniqueFd take_pidfd() { return std::move(pidfd_); }
  int pid() const { return pid_; }
  Status renew();

  // Kills the reaper process early, because no worker is left. The destructor reaps it, so its exit
  // runs in parallel with the agent's.
  void dismiss() const;
  // Lets it outlive the agent also after an orderly end.
  void leave();

 private:
  ReaperHandle(std::string token, std::string cgroup)
      : token_(std::move(token)), cgroup_(std::move(cgroup)) {}
  Status prepare();
  void end_child();

  const std::string token_;
  const std::string cgroup_;
  ReaperPage* page_ = nullptr;
  UniqueFd wake_;
  UniqueFd pidfd_;
  int pid_ = 0;
};

}  // namespace cpprun
