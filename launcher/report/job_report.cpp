#include "launcher/report/job_report.hpp"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "common/limits/tools.hpp"
#include "common/machine/files.hpp"
#include "common/machine/last_lines.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/shown_state.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "launcher/doctor/checks.hpp"
#include "launcher/doctor/probe.hpp"
#include "launcher/report/report_page.hpp"
#include "launcher/report/tail.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun::ctl {
namespace {

namespace fs = std::filesystem;

// The end of a file, from a whole line on; "" if it cannot be read.
std::string end_of(const fs::path& path, size_t most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const auto size = static_cast<int64_t>(file.tellg());
  const auto bytes = std::min(size, static_cast<int64_t>(most));
  std::string text = read_at(file, size - bytes, bytes);
  const size_t line = text.find('\n');
  return bytes < size && line != std::string::npos ? text.substr(line + 1) : text;
}

// The words of /proc/PID/cmdline or environ; none: the process has ended or is another user's.
std::vector<std::string> words_of(int64_t pid, const char* name) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const std::string text = read_file(path, limits::kRunSummaryBytes).value_or("");
  std::vector<std::string> words = text::split(text, '\0');
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

std::string outcome_text(const RunSummary& run, bool is_running) {
  if (run.outcome.empty()) {
    return is_running ? "runs" : "ended without an outcome: its agent was killed";
  }
  return std::string(name_of(shown_state_of_outcome(run.outcome))) + ", exit code " +
         std::to_string(run.exit_code);
}

std::string summary_of(const RunSummary& run, bool is_running) {
  return "job        " + run.run_id + "\nscript     " + run.script + "\noutcome    " +
         outcome_text(run, is_running) + "\ntime       " +
         duration_text_us(run.ended_us - run.begun_us) + "\nworkers    " +
         std::to_string(run.workers) + " on " + std::to_string(run.nodes) + " nodes\nrestarts   " +
         std::to_string(run.restarts_used) + " of " + std::to_string(run.max_restarts);
}

std::string versions_text() {
  utsname system{};
  ::uname(&system);
  return "cpprun " + version() + "\n" + system.sysname + " " + system.release + " " +
         system.machine;
}

std::string checks_text() {
  std::string text;
  for (const doctor::Finding& finding : doctor::run_checks(doctor::probe({}))) {
    text += std::string(doctor::name(finding.level)) + "  " + std::string(finding.check) + "  " +
            finding.text + "\n";
  }
  return text;
}

std::string events_of(const fs::path& folder) {
  std::string text;
  const std::string lines = end_of(folder / "events.jsonl", limits::kReportEventBytes);
  for (const std::string& line : text::split(lines, '\n')) {
    text += event_text(line, true).value_or("");
  }
  return text;
}

// Numbers in names by value, so that the newest attempt comes last.
void sort_by_number(std::vector<std::string>& names) {
  std::ranges::sort(names, [](const std::string& one, const std::string& other) {
    return std::pair(one.size(), one) < std::pair(other.size(), other);
  });
}

void add_logs(ReportPage& page, const fs::path& folder, int64_t lines) {
  std::vector<std::string> attempts;
  for (const std::string& name : list_folder(folder)) {
    if (name.starts_with("attempt_")) attempts.push_back(name);
  }
  if (attempts.empty()) return;
  sort_by_number(attempts);
  std::vector<std::string> ranks = list_folder(folder / attempts.back());
  sort_by_number(ranks);
  if (ranks.size() > limits::kReportRanks) ranks.resize(limits::kReportRanks);
  for (const std::string& rank : ranks) {
    for (const char* name : {"stderr.log", "stdout.log", "error.json"}) {
      const fs::path file = folder / attempts.back() / rank / name;
      std::string text = end_of(file, limits::kReportFileBytes);
      text.erase(0, last_lines_at(text, lines));
      page.add(attempts.back() + "/" + rank + "/" + name, text, limits::kReportFileBytes);
    }
  }
}

void add_stacks(ReportPage& page, const fs::path& folder) {
  for (const std::string& name : list_folder(folder)) {
    if (!name.starts_with("hang_round_")) continue;
    page.add(name, end_of(folder / name, limits::kReportFileBytes), limits::kReportFileBytes);
  }
}

void add_agent(ReportPage& page, int64_t agent) {
  if (agent < 0) return;
  page.add("Command", masked_command(words_of(agent, "cmdline")), limits::kReportFileBytes);
  page.add("Environment (chosen variables)", shown_variables(words_of(agent, "environ")),
           limits::kReportFileBytes);
}

// Passes the lines of a part of the file on.
void take_part(int file, off_t from, RunSummary& run) {
  std::string text(limits::kRunSummaryBytes, '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), from);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  for (const std::string& line : text::split(text, '\n')) run.take(line);
}

}  // namespace

RunSummary read_run(int file) {
  RunSummary run;
  const off_t size = ::lseek(file, 0, SEEK_END);
  const auto part = static_cast<off_t>(limits::kRunSummaryBytes);
  take_part(file, 0, run);
  if (size > part) take_part(file, std::max(part, size - part), run);
  return run;
}

Result<JobReport> make_job_report(const JobReportOptions& options) {
  const fs::path folder = options.folder;
  const std::string events = (folder / "events.jsonl").string();
  const UniqueFd file(::open(events.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return system_error("cannot read " + events, errno);
  const RunSummary run = read_run(file.get());
  ReportPage page("cpprun report of job " + run.run_id);
  page.add("Summary", summary_of(run, options.agent >= 0), limits::kReportFileBytes);
  page.add("Failure", run.failure, limits::kReportFileBytes);
  page.add("Versions", versions_text(), limits::kReportFileBytes);
  add_agent(page, options.agent);
  add_stacks(page, folder);
  add_logs(page, folder, options.lines);
  page.add("Events", events_of(folder), limits::kReportEventBytes);
  page.add("Machine", checks_text(), limits::kReportFileBytes);
  return JobReport{run.run_id, page.html()};
}

}  // namespace cpprun::ctl
