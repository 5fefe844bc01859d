// OrphanSweep: finds and ends processes that workers leave behind, and reaps those that the agent
// has adopted.
//
// The agent is a subreaper: a descendant that loses its parent becomes the agent's child. So when
// the agent has no children but its own, nothing is left of any worker. A daemon that a live worker
// has detached is left alone until that worker ends. The sweep waits for each child by its pid,
// never for any child. It leaves out the agent's helpers (helper_start.hpp). Thread: the loop's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/process/cleanup/cgroup.hpp"
#include "agent/process/cleanup/environment_reader.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun {

class OrphanSweep {
 public:
  struct Callbacks {
    // Whether this child is a worker that on_worker_started() does not know yet.
    std::function<bool(int pid)> is_starting;
    // Another look() is needed. Called on any thread.
    std::function<void()> on_news;
  };
  // Makes this process a subreaper. It never touches children that exist already.
  OrphanSweep(const std::string& token, Callbacks callbacks);

  void begin_round();
  void on_worker_started(int pid, LocalRank rank);

  // Requires: the worker is dead and not yet reaped, so that its pid still names its group. Signals
  // the group.
  void on_worker_ended(int pid, Instant now);

  // The round failed or was stopped: orphans get SIGKILL instead of SIGTERM from now on.
  void set_hard() { is_hard_ = true; }

  // Visits all children: reaps the dead ones, sends SIGTERM, and SIGKILL after the grace. Call it
  // after each end of a child and at next_deadline().
  void look(Instant now, Cgroup* cgroup);
  Instant next_deadline() const;  // never: no orphan is in its grace

  // As of the last scan: no process of an ended worker is left.
  bool is_clean() const;

  // As of the last scan: orphans that SIGKILL has not ended yet.
  struct Unended {
    int pid = 0;
    std::optional<LocalRank> worker;  // that started it; unset: unknown
    Instant killed_at;                // time of the first SIGKILL
  };
  std::vector<Unended> unended() const;
  std::optional<Instant> first_kill() const;  // of them

 private:
  enum class SignalSent { Nothing, Terminate, Killed };
  struct Orphan {
    int worker = 0;  // pid of the worker that started it; 0: unknown
    bool is_foreign = false;
    bool is_known = true;  // false: its environment is not read yet
    Instant asked_at{};    // its environment; zero: not yet
    bool is_seen = true;
    SignalSent signal_sent = SignalSent::Nothing;
    Instant signalled_at;
  };

  bool scan_once(Instant now);  // true: a child was reaped
  Orphan identify(int pid);
  void take_origins();
  bool is_awaited(const Orphan& orphan) const;
  bool is_due(const Orphan& orphan) const;
  void visit(int pid, Orphan& orphan, Instant now);
  Instant deadline_of(const Orphan& orphan) const;

  const std::function<bool(int)> is_starting_;
  EnvironmentReader environments_;
  std::vector<int> asked_;  // in this scan
  Instant now_;             // of the last look()
  // The process had children before: an orphan without the token may be of one of them.
  bool has_foreign_ = false;
  std::set<int> foreign_;
  bool is_hard_ = false;
  std::map<int, LocalRank> alive_;    // live workers by pid
  std::map<int, LocalRank> dead_;     // ended workers of this round by pid
  std::map<int, Instant> deadlines_;  // when the orphans of an ended worker get SIGKILL
  Instant last_deadline_;             // that of the worker that ended last
  std::map<int, Orphan> orphans_;
  bool is_unsure_ = false;  // the last scan left out a child that may be a helper
};

}  // namespace cpprun
