// Finds the events files of jobs on this machine.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>

#include "common/machine/files.hpp"
#include "common/thread/detached_thread.hpp"
#include "launcher/cpprunctl/events/events.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "events.jsonl";
// Per file. The file server of another job may hang, and must not hide this one.
constexpr std::chrono::seconds kFileTimeout(1);

// Empty: there is no such file, or its file server does not answer.
std::optional<fs::file_time_type> modified_at(const fs::path& file) {
  using Time = std::optional<fs::file_time_type>;
  const auto found = std::make_shared<std::promise<Time>>();  // the thread may outlive this call
  std::future<Time> reply = found->get_future();
  const Status started = start_detached_thread([found, file] {
    std::error_code error;
    const fs::file_time_type time = fs::last_write_time(file, error);
    found->set_value(error ? Time() : Time(time));
  });
  if (!started || reply.wait_for(kFileTimeout) != std::future_status::ready) return {};
  return reply.get();
}

// Keeps the path that was modified last.
class Newest {
 public:
  // The files in the run folders of a job.
  void offer_runs(const fs::path& job) {
    for (const std::string& run : list_folder(job)) offer(job / run / kFile);
  }
  void offer(const fs::path& file) {
    const std::optional<fs::file_time_type> time = modified_at(file);
    if (!time || (!path_.empty() && *time <= time_)) return;
    path_ = file.string();
    time_ = *time;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  fs::file_time_type time_{};
};

std::string link_target(const fs::path& link) {
  std::error_code error;
  return fs::read_symlink(link, error).string();
}

// Running agents keep their file open; /proc shows it to their user.
std::string of_running_jobs() {
  Newest newest;
  for (const std::string& name : list_folder("/proc")) {
    const fs::path process = fs::path("/proc") / name;
    const bool is_process = name.find_first_not_of("0123456789") == std::string::npos;
    if (!is_process || fs::path(link_target(process / "exe")).filename() != "cpprun") continue;
    for (const std::string& fd : list_folder(process / "fd")) {
      const fs::path file = link_target(process / "fd" / fd);
      if (file.filename() == kFile) newest.offer(file);
    }
  }
  return newest.path();
}

std::string of_kept_jobs() {
  const char* named = std::getenv("TMPDIR");
  // Jobs ignore a TMPDIR that is not writable.
  const bool is_usable = named != nullptr && *named != '\0' && ::access(named, W_OK) == 0;
  const fs::path temporary = is_usable ? named : "/tmp";
  Newest newest;
  for (const std::string& name : list_folder(temporary)) {
    if (name.starts_with("torchelastic_")) newest.offer_runs(temporary / name);
  }
  return newest.path();
}

Error nothing(const std::string& text) { return Error{ErrorKind::BadValue, text}; }

}  // namespace

Result<std::string> find_events(const std::string& path) {
  std::error_code error;
  if (path.empty()) {
    std::string found = of_running_jobs();
    if (found.empty()) found = of_kept_jobs();
    if (!found.empty()) return found;
    return nothing(
        "no job of yours runs on this machine, and no temporary run folder was kept; name a run "
        "folder (it lies in the job's --log-dir)");
  }
  if (!fs::exists(path, error))
    return nothing(path + " does not exist, and no job of that name runs here");
  if (!fs::is_directory(path, error)) return path;
  const fs::path own = fs::path(path) / kFile;
  if (fs::exists(own, error)) return own.string();
  Newest newest;
  newest.offer_runs(path);
  if (!newest.path().empty()) return newest.path();
  return nothing("there is no events.jsonl in " + path + " and none in the folders in it");
}

}  // namespace cpprun
