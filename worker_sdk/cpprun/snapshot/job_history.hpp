// JobHistory: what a job has gone through, as far as this process knows, for the intervals of
// Snapshot::maybe_save(). A process outlives its Snapshots: each round makes its own. Python
// counterpart: cpprun_worker/_job_history.py. Private to snapshot and elastic.
//
// Pure: the caller passes `now`, seconds of a steady clock, and `restarts`, of the job until this
// round. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cpprun::snapshot {

class JobHistory {
 public:
  // What keep_state() of another process takes.
  struct Record {
    // Restarts after which the job went back to a snapshot. They are the failures that an automatic
    // interval expects to come again: what a survivor shares, a save need not have kept.
    int64_t rollbacks = 0;
    double seconds = 0;                      // of training, in all runs
    std::map<std::string, double> saved_at;  // by the owner of the saves, as `seconds`
  };

  // Of a new process: each earlier restart was a rollback, until a survivor reports more.
  JobHistory(int64_t restarts, double now);

  int64_t rollbacks() const { return known_.rollbacks; }
  double seconds(double now) const { return known_.seconds + now - known_at_; }
  // When its last save began, as seconds(); before the first one, when it was first asked.
  double saved_at(const std::string& owner, double now);
  // Returns seconds().
  double begin_save(const std::string& owner, double now);
  // The job continues from a snapshot, taken after `seconds` of training.
  void resume(const std::string& owner, double seconds, int64_t restarts, double now);

  Record record(double now) const;
  // The job continues with the state of a survivor, which has this record.
  void keep_state(const Record& record, int64_t restarts, double now);

 private:
  void set_seconds(double seconds, double now);

  Record known_;  // as of known_at_
  double known_at_;
  int64_t classified_;  // restarts that were rollbacks, or kept the state
};

// That of this process. First called before the process enters a second round.
JobHistory& own_job_history();
// The `now` and `restarts` of its calls.
double steady_seconds();
int64_t own_restarts();

}  // namespace cpprun::snapshot
