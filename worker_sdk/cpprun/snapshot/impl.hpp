// Snapshot::Impl: the tracked objects, the location of the snapshots and the ranks that write them.
// Private to snapshot.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpprun/snapshot/resume_choice.hpp"
#include "cpprun/snapshot/save/in_memory_snapshot.hpp"
#include "cpprun/snapshot/save/saver.hpp"
#include "cpprun/snapshot/save/writing.hpp"
#include "cpprun/snapshot/save_interval.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "cpprun/snapshot/state/tracked.hpp"
#include "snapshot_files/archive/tensor_file.hpp"

namespace cpprun {

struct Snapshot::Impl {
  explicit Impl(SnapshotOptions given);
  void add(const std::string& name, snapshot::Tracked tracked);
  std::vector<snapshot::NamedParameter> known_parameters() const;

  // snapshot.cpp: saving
  bool start_save(int64_t step);
  bool is_due(int64_t step, const SaveWhen& when);
  // The ranks that see the same folder as this rank. The first call is a collective.
  const snapshot::Group& group();
  snapshot::WriteContext write_context();
  Status write(snapshot::Staged& staged, snapshot::StoreChannel& channel);
  Status agree_staged(const Status& own, snapshot::StoreChannel& channel);
  Status fail(const Status& why, snapshot::StoreChannel& channel);
  void report(int64_t step, const Status& outcome);
  void hint();
  void hint_at_forgotten() const;
  void hint_at_differences();
  double seconds() const;  // of training, summed over all runs

  // resume.cpp
  Resumed resume();
  std::string launchers_choice() const;
  snapshot::Candidates candidates();
  std::vector<snapshot::Candidates> gather_candidates();
  // Returns false if every rank sees the same files as rank 0.
  bool share_single_files(const std::vector<snapshot::Candidates>& of_ranks);
  Result<archive::TensorFile> open_single(const std::string& path) const;
  Result<snapshot::Loaded> load(const snapshot::Candidate& candidate);
  Result<snapshot::Loaded> load_memory(const snapshot::Candidate& candidate);
  Result<snapshot::Loaded> load_folder(const std::string& path);
  Result<snapshot::Loaded> load_single(const std::string& path);
  std::string path_of(const snapshot::Candidate& candidate) const;
  void report_to_agent(const snapshot::Candidate* loaded) const;  // null: no snapshot was loaded
  void report_damaged(const snapshot::Candidates& damaged, const std::string& instead) const;
  Resumed apply(const snapshot::Candidate& candidate, const snapshot::Loaded& loaded);

  const SnapshotOptions options;
  const bool is_single;
  const std::string place;  // path of the folder or file
  const snapshot::SnapshotComm ranks = snapshot::SnapshotComm::here();
  const int instance;  // numbers the Snapshots of a process, so that their store keys differ
  std::vector<snapshot::Tracked> tracked;
  std::vector<const torch::nn::Module*> modules;

  std::optional<snapshot::Group> known_group;
  bool is_group_certain = false;  // false: each save determines the group again
  snapshot::NodeRanks neighbours;
  snapshot::InMemorySnapshot memory;
  dist::Store store;                                     // used by the writing thread only
  std::unique_ptr<snapshot::StoreChannel> last_channel;  // other ranks may still read its keys
  int64_t saves = 0;
  int64_t saved_step = -1;  // of the last save that started
  std::string last_path;    // set by the writing thread
  std::string told;         // why the last save failed; empty if it succeeded
  bool has_hinted = false, has_reported_busy = false;

  std::chrono::steady_clock::time_point started_at = std::chrono::steady_clock::now();
  double seconds_before = 0;       // of training, in earlier runs
  double saved_at = 0;             // when the last save began, as seconds()
  double pause = 0;                // seconds that the last save stopped training
  std::atomic<double> writing{0};  // seconds that the last write took; set by the writing thread
  snapshot::PollSchedule look_out;

  // During resume(): bytes of files by path, sent by rank 0 to ranks that do not see the files.
  std::map<std::string, std::string> sent;

  snapshot::Saver saver;  // the last member: its thread uses the others and must end first
};

}  // namespace cpprun
