#include "launcher/cpprun/report_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

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
  static Result<std::unique_ptr<Draft>> open(const std::string& report) {
    const fs::path folder = fs::path(report).parent_path();
    std::string path = (folder / ".cpprun-report-XXXXXX").string();
    UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));
    if (!file.is_open()) return system_error("cannot write a file in " + folder.string(), errno);
    return std::unique_ptr<Draft>(new Draft(report, std::move(path), std::move(file)));
  }
  ~Draft() {
    if (file_.is_open()) ::unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;

  Status replace_report(const std::string& text) {
    if (Status ok = write_all(file_.get(), text); !ok) return ok;
    if (::rename(path_.c_str(), report_.c_str()) < 0) {
      return system_error("cannot rename a file to " + report_, errno);
    }
    file_.reset();
    return {};
  }

 private:
  Draft(std::string report, std::string path, UniqueFd file)
      : report_(std::move(report)), path_(std::move(path)), file_(std::move(file)) {}

  const std::string report_;
  const std::string path_;  // for its user only, as mkostemp makes it
  UniqueFd file_;
};

Status write_report_file(const std::string& path, const std::string& run_folder) {
  ctl::JobReportOptions options;
  options.folder = run_folder;
  options.agent = ::getpid();
  const Result<ctl::JobReport> report = ctl::make_job_report(options);
  if (!report) return report.error();
  const Result<std::unique_ptr<Draft>> draft = Draft::open(path);
  if (!draft) return draft.error();
  return (*draft)->replace_report(report->html);
}

}  // namespace

Result<std::string> check_report_file(const std::string& path) {
  if (path.empty()) return std::string();
  std::string target = target_of(path);
  const std::string what = "--report=" + path;
  std::error_code error;
  if (fs::exists(target, error) && !fs::is_regular_file(target, error)) {
    return Error{ErrorKind::BadValue,
                 what + " is no regular file\nhint: name a file in an existing folder"};
  }
  const Result<std::unique_ptr<Draft>> draft = Draft::open(target);
  if (draft) return target;
  return Error{ErrorKind::BadValue, what + ": " + draft.error().text +
                                        "\nhint: name a file in a folder that exists and that you "
                                        "may write"};
}

void report_at_end(AgentDaemon& agent, const std::string& target) {
  if (target.empty()) return;
  agent.at_end([target](const EndOfRun& end) {
    if (!end.speaks_for_job) return;
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
