// LogFolder: the run folder of torchrun's layout, <log_dir>/<run id>_<8
// characters>/attempt_<n>/<local rank>/.
//
// Inside the run folder also `latest` -> newest attempt; nothing else is written into <log_dir>.
// Without a log_dir a temporary folder "torchelastic_..." that is removed after success and kept,
// and named, after failure.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun {

class LogFolder {
 public:
  // Makes the run folder. `dir` "/dev/null": no folder at all, every path below is empty. A
  // `temporary_dir` that can't be written to is passed over, as Python does.
  static Result<LogFolder> make(const std::string& dir, const std::string& run_id,
                                const std::string& temporary_dir);

  // Makes attempt_<attempt> with a folder for each local rank. One of the same number that is there
  // already (the round re-formed without a restart) is renamed to
  // attempt_<n>.round_<previous_round> first. After an error this attempt has no files: every path
  // below but run_folder() is empty, as with /dev/null.
  Status begin_attempt(int attempt, int64_t round, int nproc);

  std::string stream_file(int local_rank,
                          const char* name) const;        // name: "stdout.log", "error.json", ...
  std::string attempt_file(const char* name) const;       // "filtered_stdout.log", ...
  const std::string& run_folder() const { return run_; }  // "" with /dev/null

  // This attempt's files were wished for and could not be had.
  bool lacks_attempt() const { return !run_.empty() && attempt_.empty(); }

  // The end of a run, with all files of ours closed: removes a temporary folder, but not one with
  // logs if the run was not `is_well`. Returns what people should know; mostly "". Takes
  // limits::kFolderRemovalTimeout at most, whatever the folder's file system does.
  std::string leave(bool is_well);

 private:
  bool holds_logs() const;
  std::string remove(bool is_well) const;
  Status make_attempt(const std::string& name, int64_t round, int nproc);
  void point_latest_at(const std::string& name) const;

  std::string temporary_;  // the folder around run_ when it is temporary
  std::string run_;
  std::string attempt_;
  int64_t attempt_round_ = 0;
  bool is_local_ = true;  // temporary_ is on this machine
};

}  // namespace cpprun
