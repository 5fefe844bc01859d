#include "launcher/cpprunctl/jobs/finished_jobs.hpp"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/machine/unique_fd.hpp"
#include "common/shown_state.hpp"
#include "launcher/cpprunctl/events/events.hpp"
#include "launcher/cpprunctl/jobs/job_tables.hpp"
#include "launcher/report/job_report.hpp"

namespace cpprun::ctl {

std::string FinishedJob::state() const {
  return name_of(run.outcome.empty() ? ShownState::Failed : shown_state_of_outcome(run.outcome));
}

std::vector<FinishedJob> finished_jobs(const std::string& log_dir,
                                       const std::vector<LocalJob>& running) {
  std::vector<FinishedJob> all;
  for (const std::string& path : kept_event_files(log_dir)) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    const auto is_of = [&](const LocalJob& job) { return job.view.run_folder == folder; };
    if (std::ranges::any_of(running, is_of)) continue;
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) continue;
    RunSummary run = read_run(file.get());
    if (run.begun_us >= 0) all.push_back({folder, std::move(run)});
  }
  return all;
}

}  // namespace cpprun::ctl
