// LogFolder: the log folders of a run in torchrun's layout:
// <log_dir>/<run id>_<8 characters>/attempt_<n>/<local rank>/.
//
// The run folder also has a link `latest` to the newest attempt. Nothing else is written into
// <log_dir>. Without a log_dir the run folder lies in a temporary folder "torchelastic_...", which
// is removed after success, and kept and named after failure.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun {

class LogFolder {
 public:
  // Makes the run folder. `dir` "/dev/null": no folder, and every path below is empty. If
  // `temporary_dir` is not writable it tries other folders, as Python does.
  static Result<LogFolder> make(const std::string& dir, const std::string& run_id,
                                const std::string& temporary_dir);

  // Makes attempt_<attempt> with a folder for each local rank. An older folder of that name (the
  // round formed again without a restart) is first renamed to attempt_<n>.round_<previous_round>.
  // After an error this attempt has no files: every path below but run_folder() is empty, as with
  // /dev/null.
  Status begin_attempt(int attempt, int64_t round, int nproc);

  // The same without any call of the file system, which may still be making the folder.
  void skip_attempt(int64_t round);

  // `name`: "stdout.log", "error.json", ...
  std::string stream_file(int local_rank, const char* name) const;
  std::string hang_file(int64_t round) const;             // report about a hang, of the run
  std::string attempt_file(const char* name) const;       // "filtered_stdout.log", ...
  const std::string& run_folder() const { return run_; }  // "" with /dev/null

  // begin_attempt() failed, or the attempt was skipped: it has no files.
  bool lacks_attempt() const { return !run_.empty() && attempt_.empty(); }

  // The run folder if leave() keeps it after a failure, else "". As leave(), in the same time.
  std::string kept_after_failure() const;

  // Call at the end of the run, with all log files closed. Removes a temporary folder, unless the
  // run failed and has logs. Returns a text for the user, usually "". Takes at most
  // limits::kFolderRemovalTimeout, whatever the file system does.
  std::string leave(bool is_well);

 private:
  bool holds_logs() const;
  std::string remove(bool is_well) const;
  Status make_attempt(const std::string& name, int64_t round, int nproc);
  void point_latest_at(const std::string& name) const;

  std::string temporary_;  // the temporary folder around run_; empty: none
  std::string run_;
  std::string attempt_;
  int64_t attempt_round_ = 0;
  bool is_local_ = true;  // the file system of temporary_ is local
};

}  // namespace cpprun
