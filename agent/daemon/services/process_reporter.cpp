#include "agent/daemon/services/process_reporter.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/process/proc_files.hpp"
#include "common/limits/dashboard.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"

namespace cpprun {

control::WorkerProcesses processes_of(
    RoundNumber round, const std::vector<LiveWorker>& workers,
    const std::function<std::optional<int64_t>(int pid)>& memory_bytes) {
  constexpr int64_t kMib = 1024 * 1024;
  control::WorkerProcesses report{round, {}, {}, ""};
  for (const LiveWorker& worker : workers) {
    const auto place = static_cast<size_t>(worker.local_rank.value);
    if (place >= limits::kProgressWorkers) continue;
    if (place >= report.pids.size()) {
      report.pids.resize(place + 1, 0);
      report.memory_mib.resize(place + 1, -1);
    }
    report.pids[place] = worker.pid;
    const std::optional<int64_t> bytes = memory_bytes(worker.pid);
    if (bytes) report.memory_mib[place] = *bytes / kMib;
  }
  return report;
}

std::string log_dir_of(const LogTailReporter::Files& files) {
  std::string folder = attempt_folder_of(files);
  if (folder.empty()) return "";
  folder = absolute_path(folder);
  return folder.size() <= limits::kLogPathBytes ? folder : "";
}

void ProcessReporter::on_registered(bool is_wanted) {
  is_wanted_ = is_wanted;
  last_sent_.reset();
  send_if_new();
}

void ProcessReporter::on_started() {
  has_workers_ = true;
  send_if_new();
}

void ProcessReporter::on_watch(const control::Watch& watch) {
  watched_until_ = boot_now() + std::clamp(watch.lasts, Duration{}, limits::kWatchDuration);
  if (!is_ticking_) report();
}

void ProcessReporter::on_disconnected() {
  is_wanted_ = is_ticking_ = false;
  watched_until_ = Instant{};
  timer_.set(Instant::never());
}

void ProcessReporter::report() {
  is_ticking_ = is_wanted_ && boot_now() < watched_until_;
  if (!is_ticking_) return timer_.set(Instant::never());
  send_if_new();
  timer_.set(boot_now() + limits::kProcessesInterval);
}

void ProcessReporter::send_if_new() {
  if (!is_wanted_ || !has_workers_) return;
  const std::vector<LiveWorker> workers = callbacks_.live();
  if (workers.empty()) return;
  control::WorkerProcesses now = processes_of(callbacks_.round(), workers, resident_bytes);
  for (const LiveWorker& worker : workers) {
    now.log_dir = log_dir_of(callbacks_.files(static_cast<int>(worker.local_rank.value)));
    if (!now.log_dir.empty()) break;
  }
  if (now == last_sent_) return;
  callbacks_.send(now);
  last_sent_ = std::move(now);
}

}  // namespace cpprun
