#include "launcher/cpprunctl/logs/log_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "launcher/cpprunctl/logs/time_spec.hpp"
#include "launcher/report/event_text.hpp"

namespace cpprun::ctl {
namespace {

namespace fs = std::filesystem;

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The workers that an agent has started, in order, and their log folders; read from events.jsonl.
class RunFolder {
 public:
  explicit RunFolder(const std::string& path) : path_(path) {
    std::ifstream events(path + "/events.jsonl", std::ios::binary);
    for (std::string line; std::getline(events, line);) {
      const std::optional<RoundEvent> event = round_event(line);
      if (!event) continue;
      if (event->name == "round_formed") attempts_[event->round] = event->restart_count;
      if (event->name == "worker_started") started_.push_back(*event);
    }
  }

  void add_files(const JobCommandOptions& options, std::vector<LogFile>& files) const {
    for (const RoundEvent& worker : started_) {
      if (options.rank && worker.rank != *options.rank) continue;
      const std::string folder = folder_of(worker.round) + "/" + std::to_string(worker.local_rank);
      for (const char* name : {"/stdout.log", "/stderr.log"}) {
        if (is_there(folder + name)) files.push_back({folder + name, worker.rank, worker.time_us});
      }
    }
  }

 private:
  // An older round with the same restart count has been renamed to ".round_<n>".
  std::string folder_of(int64_t round) const {
    const auto attempt = attempts_.find(round);
    if (attempt == attempts_.end()) return path_;
    const std::string folder = path_ + "/attempt_" + std::to_string(attempt->second);
    const std::string own = folder + ".round_" + std::to_string(round);
    std::error_code error;
    return fs::is_directory(own, error) ? own : folder;
  }

  std::string path_;
  std::map<int64_t, int64_t> attempts_;  // restart count by round
  std::vector<RoundEvent> started_;
};

bool is_meant(const LocalJob& job, const JobCommandOptions& options) {
  return options.node.empty() || job.view.node == options.node;
}

}  // namespace

std::vector<LogFile> living_files(const std::vector<LocalJob>& agents,
                                  const JobCommandOptions& options) {
  std::vector<LogFile> files;
  for (const LocalJob& job : agents) {
    if (!is_meant(job, options)) continue;
    for (const admin::WorkerView& worker : job.view.workers) {
      if (options.rank && worker.rank != *options.rank) continue;
      for (const std::string& path : {worker.stdout_file, worker.stderr_file}) {
        if (!path.empty()) files.push_back({path, worker.rank, 0});
      }
    }
  }
  return files;
}

std::vector<LogFile> all_files(const std::vector<LocalJob>& agents,
                               const JobCommandOptions& options) {
  std::vector<LogFile> files;
  for (const LocalJob& job : agents) {
    if (is_meant(job, options) && !job.view.run_folder.empty()) {
      RunFolder(job.view.run_folder).add_files(options, files);
    }
  }
  for (LogFile& file : living_files(agents, options)) {
    if (std::ranges::find(files, file.path, &LogFile::path) == files.end()) {
      files.push_back(std::move(file));
    }
  }
  return files;
}

LogBegin begin_of(const LogFile& file, int64_t since) {
  struct stat facts {};
  LogBegin begin;
  if (::stat(file.path.c_str(), &facts) != 0) return begin;
  begin.written = int64_t{facts.st_mtim.tv_sec} * 1'000'000 + facts.st_mtim.tv_nsec / 1000;
  if (begin.written < since || facts.st_size == 0) return begin;
  begin.how = LogBegin::How::Here;
  if (file.began >= since) return begin;
  std::ifstream bytes(file.path, std::ios::binary);
  const std::optional<int64_t> at = behind_older(bytes, since);
  if (!at) begin.how = LogBegin::How::LastLines;
  begin.at = at.value_or(0);
  return begin;
}

}  // namespace cpprun::ctl
