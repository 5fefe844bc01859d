// Finds the events files of jobs on this machine.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/limits/tools.hpp"
#include "common/log/log.hpp"
#include "common/machine/files.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/thread/detached_thread.hpp"
#include "launcher/cpprunctl/events/events.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/job_report.hpp"

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

// The folder of temporary run folders.
fs::path temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  // Jobs ignore a TMPDIR that is not writable.
  const bool is_usable = named != nullptr && *named != '\0' && ::access(named, W_OK) == 0;
  return is_usable ? named : "/tmp";
}

std::string of_kept_jobs() {
  const std::vector<std::string> files = kept_event_files("");
  return files.empty() ? "" : files.front();
}

// The newest finished run whose id begins with `name`. "": there is none.
Result<std::string> finished_run(const std::string& name) {
  std::set<std::string> names;
  std::vector<std::pair<std::string, std::string>> runs;  // run id and file, newest first
  for (std::string& path : kept_event_files("")) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) continue;
    const std::string run_id = ctl::read_run(file.get()).run_id;
    names.insert(run_id);
    runs.emplace_back(run_id, std::move(path));
  }
  const Result<std::string> meant = ctl::name_meant(names, name);
  if (!meant) return meant.error();
  const auto found = std::ranges::find(runs, *meant, [](const auto& run) { return run.first; });
  return meant->empty() || found == runs.end() ? "" : found->second;
}

Error nothing(const std::string& text) { return Error{ErrorKind::BadValue, text}; }

}  // namespace

std::vector<std::string> kept_event_files(const std::string& log_dir) {
  std::vector<fs::path> jobs;
  const fs::path temporary = temporary_folder();
  for (const std::string& name : list_folder(temporary)) {
    if (name.starts_with("torchelastic_")) jobs.push_back(temporary / name);
  }
  if (!log_dir.empty()) jobs.emplace_back(log_dir);
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  for (const fs::path& job : jobs) {
    for (const std::string& run : list_folder(job)) {
      const fs::path file = job / run / kFile;
      if (const auto time = modified_at(file)) found.emplace_back(*time, file.string());
    }
  }
  std::ranges::sort(found, std::greater());
  if (found.size() > limits::kKeptRuns) found.resize(limits::kKeptRuns);
  std::vector<std::string> files;
  for (auto& [time, file] : found) files.push_back(std::move(file));
  return files;
}

Result<std::string> find_events(const std::string& path) {
  std::error_code error;
  if (path.empty()) {
    std::string found = of_running_jobs();
    if (!found.empty()) return found;
    found = of_kept_jobs();
    if (!found.empty()) {
      // The job that the user means may have left no folder.
      log::note("no job of yours runs; this is the newest run whose folder was kept: " +
                fs::path(found).parent_path().string());
      return found;
    }
    return nothing(
        "no job of yours runs on this machine, and no temporary run folder was kept; name a run "
        "folder (it lies in the job's --log-dir)");
  }
  if (!fs::exists(path, error)) {
    Result<std::string> finished = finished_run(path);
    if (!finished || !finished->empty()) return finished;
    return nothing(path + " does not exist, and no job of that name runs here or has a run folder");
  }
  if (!fs::is_directory(path, error)) return path;
  const fs::path own = fs::path(path) / kFile;
  if (fs::exists(own, error)) return own.string();
  Newest newest;
  newest.offer_runs(path);
  if (!newest.path().empty()) return newest.path();
  return nothing("there is no events.jsonl in " + path + " and none in the folders in it");
}

}  // namespace cpprun
