#include "agent/process/streams/log_folder.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "agent/process/cleanup/folder_removal.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/identity.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSuffix = 8;
constexpr size_t kLongestBelow =
    sizeof "/attempt_2147483647.round_9223372036854775807/4096/stdout.log";
constexpr int kFolderTries = 100;  // random names that exist already
constexpr mode_t kMode = 0700;     // as torchrun: output may be secret

std::string random_suffix() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz012345";
  static_assert(kLetters.size() == 32);
  const auto bytes = random_bytes();
  std::string suffix;
  for (size_t i = 0; i < kSuffix; ++i) suffix += kLetters[bytes[i] % kLetters.size()];
  return suffix;
}

Error folder_error(const std::string& path, int error) {
  if (error == ENAMETOOLONG) {
    return Error{ErrorKind::BadValue,
                 "the log folder's path is too long (" + std::to_string(path.size()) +
                     " characters, the system allows " + std::to_string(PATH_MAX) +
                     "): choose a shorter --log-dir"};
  }
  if (error == ENOTDIR || error == EEXIST) {
    return Error{ErrorKind::BadValue,
                 "cannot make the log folder " + path + ": a file is in its place"};
  }
  return system_error("cannot make the log folder " + path, error);
}

// Makes a new folder named `start` plus a random suffix.
Result<std::string> make_unique_folder(const std::string& start) {
  for (int i = 0; i < kFolderTries; ++i) {
    const std::string path = start + random_suffix();
    if (::mkdir(path.c_str(), kMode) == 0) return path;
    if (errno != EEXIST) return folder_error(path, errno);
  }
  return folder_error(start, EEXIST);
}

Result<std::string> prepare_base(const std::string& dir) {
  std::error_code error;
  const std::string base = fs::absolute(dir, error).lexically_normal().string();
  if (error) return folder_error(dir, error.value());
  // With a longer path the workers' files could not be opened later.
  if (base.size() + NAME_MAX + kLongestBelow >= PATH_MAX) return folder_error(base, ENAMETOOLONG);
  fs::create_directories(base, error);
  if (error) return folder_error(base, error.value());
  if (!fs::is_directory(base, error)) return folder_error(base, ENOTDIR);
  return base;
}

// Where Python's tempfile looks when TMPDIR is unusable.
constexpr std::string_view kFallbackFolders[] = {"/tmp", "/var/tmp", "/usr/tmp", "."};

Result<std::string> make_temporary_in(const std::string& dir) {
  std::error_code error;
  if (!fs::is_directory(dir, error)) return folder_error(dir, error ? error.value() : ENOTDIR);
  const Result<std::string> base = prepare_base(dir);
  return base ? make_unique_folder(*base + "/torchelastic_") : base;
}

// An error is the one about the preferred folder.
Result<std::string> make_temporary(const std::string& preferred) {
  Result<std::string> made = make_temporary_in(preferred);
  if (made) return made;
  for (const std::string_view dir : kFallbackFolders) {
    Result<std::string> other = make_temporary_in(std::string(dir));
    if (other) return other;
  }
  return Error{made.error().kind,
               made.error().text + ", nor in /tmp, /var/tmp, /usr/tmp and the current folder"};
}

Status make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), kMode) == 0) return {};
  return folder_error(path, errno);
}

}  // namespace

Result<LogFolder> LogFolder::make(const std::string& dir, const std::string& run_id,
                                  const std::string& temporary_dir) {
  LogFolder folder;
  if (dir == "/dev/null") return folder;
  const bool is_temporary = dir.empty();
  Result<std::string> base = is_temporary ? make_temporary(temporary_dir) : prepare_base(dir);
  if (!base) return base.error();
  if (is_temporary) {
    folder.temporary_ = *base;
    folder.is_local_ = is_local_folder(*base);
  }
  const std::string name = text::file_name(run_id, NAME_MAX - kSuffix - 1);
  Result<std::string> run = make_unique_folder(*base + "/" + name + "_");
  if (!run) return run.error();
  folder.run_ = *run;
  return folder;
}

Status LogFolder::begin_attempt(int attempt, int64_t round, int nproc) {
  if (run_.empty()) return {};
  const std::string name = "attempt_" + std::to_string(attempt);
  attempt_ = run_ + "/" + name;
  Status made = make_attempt(name, round, nproc);
  if (!made) attempt_.clear();
  return made;
}

void LogFolder::skip_attempt(int64_t round) {
  attempt_.clear();
  attempt_round_ = round;
}

Status LogFolder::make_attempt(const std::string& name, int64_t round, int nproc) {
  if (::access(attempt_.c_str(), F_OK) == 0) {
    const std::string old = attempt_ + ".round_" + std::to_string(attempt_round_);
    if (::rename(attempt_.c_str(), old.c_str()) < 0) {
      return system_error("cannot rename " + attempt_ + " to " + old, errno);
    }
  }
  attempt_round_ = round;
  if (Status made = make_folder(attempt_); !made) return made;
  for (int rank = 0; rank < nproc; ++rank) {
    if (Status made = make_folder(attempt_ + "/" + std::to_string(rank)); !made) return made;
  }
  point_latest_at(name);
  return {};
}

// Renames a new link over the old one, so that there is always one. Ignores errors: the link is a
// convenience only.
void LogFolder::point_latest_at(const std::string& name) const {
  const std::string link = run_ + "/latest";
  const std::string fresh = run_ + "/.latest.new";
  ::unlink(fresh.c_str());
  if (::symlink(name.c_str(), fresh.c_str()) < 0) return;
  if (::rename(fresh.c_str(), link.c_str()) < 0) ::unlink(fresh.c_str());
}

std::string LogFolder::stream_file(int local_rank, const char* name) const {
  return attempt_.empty() ? "" : attempt_ + "/" + std::to_string(local_rank) + "/" + name;
}

std::string LogFolder::hang_file(int64_t round) const {
  return run_.empty() ? "" : run_ + "/hang_round_" + std::to_string(round) + ".txt";
}

std::string LogFolder::attempt_file(const char* name) const {
  return attempt_.empty() ? "" : attempt_ + "/" + name;
}

// Whether the run folder holds files that a user would look for: output, or error files.
bool LogFolder::holds_logs() const {
  if (run_.empty()) return false;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(run_, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    const std::string name = entry->path().filename().string();
    const bool is_ours = name == "events.jsonl" || name == "failure_summary.json";
    if (!is_ours && entry->is_regular_file(gone) && entry->file_size(gone) > 0 && !gone) {
      return true;
    }
  }
  return false;
}

std::string LogFolder::remove(bool is_well) const {
  if (!is_well && holds_logs()) return "the logs of this run are kept in " + run_;
  const Status removed = remove_folder(temporary_);
  return removed ? "" : "the temporary folder stays: " + removed.error().text;
}

std::string LogFolder::kept_after_failure() const {
  if (temporary_.empty()) return run_;
  const auto look = [this] { return holds_logs() ? run_ : std::string(); };
  if (is_local_) return look();
  const Result<std::string> folder = run_apart(look, limits::kFolderRemovalTimeout);
  return folder ? *folder : "";
}

std::string LogFolder::leave(bool is_well) {
  if (temporary_.empty()) return "";
  const LogFolder left = std::exchange(*this, {});
  if (left.is_local_) return left.remove(is_well);
  const auto work = [&left, is_well] { return left.remove(is_well); };
  const Result<std::string> note = run_apart(work, limits::kFolderRemovalTimeout);
  return note ? *note : "the temporary folder " + left.temporary_ + " stays: " + note.error().text;
}

}  // namespace cpprun
