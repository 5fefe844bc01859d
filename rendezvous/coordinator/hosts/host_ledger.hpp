// HostLedger: the faults of each host of a job, over all its rounds, and which hosts are excluded:
// by --exclude-after, because a program cannot start there, or by an operator.
//
// A round's faults count when the round is over: one at most for each host, since one fault shows
// itself in several ways. Only the root cause of all nodes counts among failed workers; the others
// failed because of it.
//
// A core: no I/O, no clock. A host is known by the name that its agents register with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/failure/worker_exit.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

enum class HostFault { Failure, FailedStart, Hang, FailedCheck, Loss };

// "2 failures, 1 hang"; "no fault".
std::string faults_text(const control::HostRecord& record);

class HostLedger {
 public:
  // `exclude_after`: --exclude-after; 0: faults exclude no host.
  explicit HostLedger(int64_t exclude_after) : exclude_after_(exclude_after) {}

  bool is_on() const { return exclude_after_ > 0; }
  bool is_excluded(const std::string& host) const;
  // nullptr: no fault, and not excluded.
  const control::HostRecord* find(const std::string& host) const;
  // By name; at most limits::kHostRecords.
  const std::map<std::string, control::HostRecord>& all() const { return records_; }
  // Names of the excluded hosts with commas; "" if there are none.
  std::string excluded_text() const;

  // ---- faults of the current round, which end_round() counts
  // The program cannot be started on this host, and a restart there cannot help.
  void note_fatal_start(const std::string& host, const std::string& why) {
    fatal_starts_.emplace(host, why);
  }
  void note_loss(const std::string& host, const std::string& why) { losses_.emplace(host, why); }
  struct RoundResult {
    std::vector<std::string> excluded;  // from now on
    std::string fatal_start;            // why a program cannot be started; "": none
    bool is_cause_excluded = false;     // the host of the root cause is one of them
  };
  // The round of `size` nodes is over. `root_cause`: nullptr: no worker failed. Losses of more than
  // half of the nodes count for none of them: then the coordinator's own network is the likelier
  // cause.
  RoundResult end_round(const RootCause* root_cause, size_t size);

  // Counts a fault outside of rounds. True: the host is excluded from now on.
  bool count(const std::string& host, HostFault fault, const std::string& why);
  // A rank there was found slow. No fault: it excludes no host by itself.
  void note_slow(const std::string& host, const std::string& why);
  // By --stragglers=exclude. False: it is excluded already.
  bool exclude_for(const std::string& host, const std::string& why);
  // By an operator. False: it is excluded already.
  bool exclude(const std::string& host, const std::string& why);
  // Its faults are forgotten. False: it was not excluded.
  bool readmit(const std::string& host);

  // What another coordinator, or an earlier job, has counted; the greater revision wins, and
  // records out of range are ignored. True: they are taken over.
  bool learn(const control::HostRecords& known);
  control::HostRecords to_report() const;
  // Whether there was a change since the last call.
  bool take_change() { return std::exchange(has_changed_, false); }
  // Agents keep the records for the next coordinator.
  bool is_shared() const { return is_on() || is_shared_; }

 private:
  control::HostRecord* record_of(const std::string& host);
  bool exclude_as(control::HostRecord& record, control::Exclusion by, const std::string& why);
  void on_change();

  const int64_t exclude_after_;
  std::map<std::string, control::HostRecord> records_;
  int64_t revision_ = 0;
  bool has_changed_ = false;
  bool is_shared_ = false;                           // a host is or was excluded
  std::map<std::string, std::string> fatal_starts_;  // host, why
  std::map<std::string, std::string> losses_;
};

}  // namespace cpprun
