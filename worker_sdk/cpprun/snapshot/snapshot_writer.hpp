// SnapshotWriter: copies the tracked state into memory in the training thread, completes the save
// there in a second thread, and writes it to disk in a third one. Private to snapshot.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/limits/snapshots.hpp"
#include "cpprun/snapshot/folder_group.hpp"
#include "cpprun/snapshot/save/background_thread.hpp"
#include "cpprun/snapshot/save/in_memory_snapshot.hpp"
#include "cpprun/snapshot/save/save_report.hpp"
#include "cpprun/snapshot/save/watched_files.hpp"
#include "cpprun/snapshot/save/writing.hpp"
#include "cpprun/snapshot/save_schedule.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/state/tracked.hpp"
#include "snapshot_files/folders/prune.hpp"

namespace cpprun::snapshot {

// Where a save goes.
enum class SavePlace { None, Memory, Disk };  // left out; in memory only; in memory and on disk

// The training thread calls all methods. While a save is written to disk, a further one may go into
// the other slot of the memory. References must outlive the SnapshotWriter; until end() has
// returned true, its threads use `memory`.
class SnapshotWriter {
 public:
  SnapshotWriter(const SnapshotLocation& location, const SnapshotComm& comm, FolderGroup& group,
                 InMemorySnapshot& memory, snapshot_files::KeepRule keep,
                 snapshot_files::FileLayer& files = snapshot_files::real_files(),
                 Duration answer_timeout = limits::kFileAnswerTimeout);
  // Requires that end() has returned true; else it waits for the file system.
  ~SnapshotWriter();

  // Collective: where the save of this step can go now. `to_disk`: it is to go there, as it is if
  // the last write has failed; if it can't, rank 0 prints that, once.
  SavePlace place_for(int64_t step, bool to_disk);
  // Collective, where place_for() permits it. Copies the state of `tracked` and starts to save it.
  // `seconds`: training time so far. `is_leaders`: all of the shared state is that of the folder's
  // lowest rank, because the ranks differ.
  void start(const std::vector<Tracked>& tracked, int64_t step, double seconds, bool is_leaders,
             bool to_disk);
  // Waits for the running saves. True if the last one is in memory, and the last one that was to go
  // to disk is there. False also if a call of the file system lasts longer than `answer_timeout`:
  // then the save continues.
  bool wait();
  // The same before the destruction; while an exception ends the training, the saves do not wait
  // for other ranks. False: a save continues.
  bool end();

  // Of the last save.
  SaveCost cost() const { return {pause_, staging_, writing_}; }
  // Of the last snapshot on disk; empty if there is none.
  std::string last_path() const;

 private:
  // What the threads need of a save.
  struct Save {
    Staged staged;
    WriteContext context;
    Status is_staged;    // or why this rank has no state in memory
    std::string prefix;  // of its store keys
    bool to_disk = false;
  };

  std::vector<int64_t> obstacles();
  Status copy_state(const std::vector<Tracked>& tracked, int64_t step, double seconds,
                    bool is_leaders, Save& save);
  WriteContext write_context();
  void stage(const std::shared_ptr<Save>& save);
  Status complete(Save& save, StoreChannel& channel);
  // Empty: the running saves have ended. Else the path of a call that is not answered.
  std::string wait_for_files();
  void write(const Save& save);
  Result<std::string> write(const Save& save, StoreChannel& channel);

  const SnapshotLocation& location_;
  const SnapshotComm& comm_;
  FolderGroup& group_;
  InMemorySnapshot& memory_;
  const snapshot_files::KeepRule keep_;
  const int instance_;  // number in this process, so that store keys of several writers differ

  int64_t saves_ = 0;
  bool has_reported_busy_ = false;
  double pause_ = 0;  // seconds that the last save stopped training
  // Seconds until the last save was in memory, and until it was on disk.
  std::atomic<double> staging_ = 0, writing_ = 0;
  // Whether the last save is in memory, and the last one for the disk is there.
  std::atomic<bool> is_staged_{true}, is_written_{true}, gives_up_{false};
  SaveReport report_;

  // A store connection for each thread. Other ranks may still read the keys of the last channels.
  dist::Store staging_store_, writing_store_;
  // The stager's while it runs, else the training thread's.
  std::unique_ptr<StoreChannel> last_staging_;
  size_t written_at_ = 0;  // offset of the slot that is written to disk
  // The disk's thread's while it runs, else the training thread's.
  std::unique_ptr<StoreChannel> last_writing_;
  WatchedFiles files_;
  const Duration answer_timeout_;
  bool has_reported_stall_ = false;
  mutable std::mutex path_mutex_;
  std::string last_path_;  // guarded by path_mutex_

  BackgroundThread disk_{"cpprun-writer"};
  BackgroundThread stager_{"cpprun-saver"};  // hands over to the other one
};

}  // namespace cpprun::snapshot
