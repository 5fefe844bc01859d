// OrphanSweep: finds and ends what workers leave behind, and reaps what the agent has adopted.
//
// The agent is a subreaper, so whatever loses its parent below it becomes its child: when it has no
// children but its own, nothing that a worker started lives. What a living worker has detached on
// purpose (a daemon) is left alone until that worker has ended. Children are waited for one by one,
// never "any". Thread: the loop's.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/process/cleanup/cgroup.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun {

class OrphanSweep {
 public:
  // Makes this process a subreaper. Children that are there already are never touched.
  explicit OrphanSweep(std::string token);

  void begin_round();
  void on_worker_started(int pid, LocalRank rank);

  // Requires: the worker is dead and not yet reaped, so its number still names its group. Tells the
  // group to go.
  void on_worker_ended(int pid, Instant now);

  // The round has failed or was stopped: what is left behind gets KILL at once from now on.
  void set_hard() { is_hard_ = true; }
  bool is_hard() const { return is_hard_; }

  // Looks at all children: reaps, tells to go, kills what has had its time. To be called after each
  // end of a child and at next_deadline().
  void look(Instant now, Cgroup* cgroup);
  Instant next_deadline() const;  // never, if nothing waits for its time

  // As of the last look: nothing is left of workers that have ended.
  bool is_clean() const;

  // As of the last look: what is waited for although it got SIGKILL.
  struct Unended {
    int pid = 0;
    std::optional<LocalRank> worker;  // from which it came, if that is known
    Instant killed_at;                // when it first got SIGKILL
  };
  std::vector<Unended> unended() const;
  std::optional<Instant> first_kill() const;  // of them

 private:
  enum class SignalSent { Nothing, Terminate, Killed };
  struct Orphan {
    int worker = 0;  // pid of the worker it came from; 0: not known
    bool is_foreign = false;
    bool is_known = true;  // its environment was read, or need not be
    bool is_seen = true;
    SignalSent signal_sent = SignalSent::Nothing;
    Instant told_at;
  };

  bool look_once(Instant now);  // was anybody reaped?
  Orphan identify(int pid) const;
  bool is_due(const Orphan& left) const;
  void visit(int pid, Orphan& left, Instant now);
  Instant deadline_of(const Orphan& left) const;

  std::string token_;
  bool has_foreign_ = false;  // children of others: an orphan without our mark may be theirs
  std::set<int> foreign_;
  bool is_hard_ = false;
  std::map<int, LocalRank> alive_;    // workers by pid
  std::map<int, LocalRank> dead_;     // ended ones of this round
  std::map<int, Instant> deadlines_;  // of ended ones: when their leftovers get KILL
  Instant last_deadline_;             // of the worker that ended last
  std::map<int, Orphan> orphans_;
};

// Children of the agent that are no workers (the reaper process, helper tools): the sweep neither
// reaps nor ends them. Thread-safe; one list per process, because children belong to the process.

void register_helper(int pid);
void unregister_helper(int pid);  // after it was reaped
bool is_helper(int pid);

}  // namespace cpprun
