// SnapshotWriter: copies the tracked state into memory in the training thread, and writes it to
// disk in a thread of its own. Private to snapshot.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cpprun/snapshot/folder_group.hpp"
#include "cpprun/snapshot/save/in_memory_snapshot.hpp"
#include "cpprun/snapshot/save/writing.hpp"
#include "cpprun/snapshot/save_schedule.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/state/tracked.hpp"
#include "snapshot_files/folders/prune.hpp"

namespace cpprun::snapshot {

// The training thread calls all methods. References must outlive the SnapshotWriter; until wait()
// returns, the writing thread uses `memory`.
class SnapshotWriter {
 public:
  SnapshotWriter(const SnapshotLocation& location, const SnapshotComm& comm, FolderGroup& group,
                 InMemorySnapshot& memory, snapshot_files::KeepRule keep);
  ~SnapshotWriter();  // waits for the running save

  // Collective. True if any rank is still writing; rank 0 then warns, once, that `step` is skipped.
  bool is_busy(int64_t step);
  // Collective; requires that no rank is busy. Copies the state of `tracked` and starts to write
  // it. `seconds`: training time so far. `sample`: of a parameter, to be compared between ranks, or
  // the reason why this state must not be saved.
  void start(const std::vector<Tracked>& tracked, int64_t step, double seconds,
             const Result<std::string>& sample);
  // Waits for the running save. True if the last one is on disk.
  bool wait();

  // Of the last save.
  SaveCost cost() const { return {pause_, writing_}; }
  // Of the last snapshot on disk; empty if there is none. Requires wait().
  const std::string& last_path() const { return last_path_; }

 private:
  void start_thread(std::function<Status()> job);
  WriteContext write_context();
  Status write(Staged& staged, const WriteContext& context, const std::string& sample,
               StoreChannel& channel);
  // `own`: the sample of this rank, or why it has no state in memory.
  Status agree_staged(const Result<std::string>& own, StoreChannel& channel);
  Status fail(const Error& why, StoreChannel& channel);
  void compare_samples(const std::string& own, int64_t step, const Group& group,
                       StoreChannel& channel);
  void report(int64_t step, const Status& outcome);

  const SnapshotLocation& location_;
  const SnapshotComm& comm_;
  FolderGroup& group_;
  InMemorySnapshot& memory_;
  const snapshot_files::KeepRule keep_;
  const int instance_;  // number in this process, so that store keys of several writers differ

  int64_t saves_ = 0;
  bool has_reported_busy_ = false;
  double pause_ = 0;                 // seconds that the last save stopped training
  std::atomic<double> writing_ = 0;  // seconds that the last write took
  // The following belong to the writing thread while it runs.
  dist::Store store_;
  std::unique_ptr<StoreChannel> last_channel_;  // other ranks may still read its keys
  std::string last_path_;
  std::string last_error_;  // why the last save failed; empty if it succeeded
  bool has_reported_drift_ = false;

  std::atomic<bool> is_busy_{false}, gives_up_{false}, is_well_{true};
  std::thread thread_;
};

}  // namespace cpprun::snapshot
