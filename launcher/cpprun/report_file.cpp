#include "launcher/cpprun/report_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "common/limits/tools.hpp"
#include "common/log/log.hpp"
#include "common/machine/files.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/thread/io_thread.hpp"
#include "launcher/report/job_report.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;

// The file itself if `path` is a link: the report replaces what the link names.
std::string target_of(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  return error ? absolute_path(path) : whole.string();
}

// A temporary file beside the report. The destructor removes it unless it has replaced the report.
class Draft {
 public:
  explicit Draft(const std::string& report)
      : report_(report),
        path_((fs::path(report).parent_path() / ".cpprun-report-XXXXXX").string()),
        file_(::mkostemp(path_.data(), O_CLOEXEC)),
        error_(file_.is_open() ? 0 : errno) {}
  ~Draft() {
    if (file_.is_open()) ::unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;

  Status opened() const {
    if (file_.is_open()) return {};
    return system_error("cannot write a file in " + fs::path(report_).parent_path().string(),
                        error_);
  }
  Status replace_report(const std::string& text) {
    if (Status ok = opened(); !ok) return ok;
    if (Status ok = write_all(file_.get(), text); !ok) return ok;
    if (::rename(path_.c_str(), report_.c_str()) < 0) {
      return system_error("cannot rename a file to " + report_, errno);
    }
    file_.reset();
    return {};
  }

 private:
  const std::string report_;
  std::string path_;  // for its user only, as mkostemp makes it
  UniqueFd file_;
  const int error_;
};

Status write_report_file(const std::string& path, const std::string& run_folder) {
  ctl::JobReportOptions options;
  options.folder = run_folder;
  options.agent = ::getpid();
  const Result<ctl::JobReport> report = ctl::make_job_report(options);
  if (!report) return report.error();
  return Draft(path).replace_report(report->html);
}

bool is_writer(const EndOfRun& end) {
  if (end.last_round.round.value == 0) return end.has_coordinator;
  return end.last_round.group_rank == 0;
}

}  // namespace

Status check_report_file(const std::string& path) {
  if (path.empty()) return {};
  const std::string target = target_of(path);
  const std::string what = "--report=" + path;
  std::error_code error;
  if (fs::exists(target, error) && !fs::is_regular_file(target, error)) {
    return Error{ErrorKind::BadValue,
                 what + " is no regular file\nhint: name a file in an existing folder"};
  }
  const Status opened = Draft(target).opened();
  if (opened) return {};
  return Error{ErrorKind::BadValue, what + ": " + opened.error().text +
                                        "\nhint: name a file in a folder that exists and that you "
                                        "may write"};
}

void report_at_end(AgentDaemon& agent, const std::string& path) {
  if (path.empty()) return;
  agent.at_end([target = target_of(path)](const EndOfRun& end) {
    if (!is_writer(end)) return;
    IoThread io;
    const auto work = [target, folder = end.run_folder] {
      return write_report_file(target, folder);
    };
    const std::optional<Status> written = io.result_of(work, limits::kReportTimeout);
    if (written && *written) {
      const std::string text = "the report of the job is " + target;
      return end.is_well ? log::info(text) : log::note(text);
    }
    log::warning("the report of the job was not written to " + target + ": " +
                 (written ? written->error().text : "a file system does not answer"));
  });
}

}  // namespace cpprun
