#include "launcher/cpprunctl/report/report.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "common/log/log.hpp"
#include "common/machine/files.hpp"
#include "common/machine/unique_fd.hpp"
#include "launcher/cpprunctl/events/events.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/job_report.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;
using ctl::LocalJob;

// Letters that are safe in a file name.
std::string file_name_of(const std::string& run_id) {
  std::string name = run_id.substr(0, 64);
  for (char& c : name) {
    const bool is_safe = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
    if (!is_safe) c = '_';
  }
  return "cpprun-report-" + name + ".html";
}

Status write_new(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open() && errno == EEXIST) {
    return Error{ErrorKind::BadValue, path + " exists\nhint: write another file with --output"};
  }
  if (!file.is_open()) return system_error("cannot write " + path, errno);
  return write_all(file.get(), text);
}

}  // namespace

Status write_report(const ReportOptions& options) {
  const std::vector<LocalJob> all = ctl::local_jobs();
  std::error_code error;
  std::string place = options.job;
  if (!place.empty() && !fs::exists(place, error)) {
    const auto agents = ctl::agents_of(all, place);
    if (agents && !agents->front().view.run_folder.empty()) place = agents->front().view.run_folder;
  }
  const Result<std::string> events = find_events(place);
  if (!events) return events.error();
  const std::string folder = fs::path(*events).parent_path().string();
  const auto agent =
      std::ranges::find(all, folder, [](const LocalJob& job) { return job.view.run_folder; });
  const Result<ctl::JobReport> report =
      ctl::make_job_report({folder, options.lines, agent == all.end() ? -1 : agent->view.pid});
  if (!report) return report.error();
  const std::string path = options.output.empty() ? file_name_of(report->run_id) : options.output;
  if (Status written = write_new(path, report->html); !written) return written;
  ctl::print(path + "\n");
  log::note("look at the file before you send it: log lines are as the workers wrote them");
  return {};
}

}  // namespace cpprun
