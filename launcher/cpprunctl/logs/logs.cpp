// The command logs: prints workers' log files on this machine, or on all nodes (job_logs.hpp).
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <list>

#include "common/log/log.hpp"
#include "common/text.hpp"
#include "launcher/cpprunctl/jobs/job_commands.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/cpprunctl/logs/job_logs.hpp"
#include "launcher/cpprunctl/logs/log_files.hpp"
#include "launcher/cpprunctl/logs/time_spec.hpp"
#include "launcher/report/tail.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun {
namespace {

using namespace ctl;

constexpr int kPollMilliseconds = 100;
constexpr int kPollsPerQuery = 10;  // to the agent: a new round has new files

void show(const std::string& text, const std::string& before) {
  if (text.empty()) return;
  if (before.empty()) return print_unchanged(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1);
    out += before + text.substr(at, end + 1 - at);
    at = end + 1;
  }
  if (!out.ends_with('\n')) out += '\n';
  print_unchanged(out);
}

std::string clock_text(int64_t microseconds) {
  const time_t whole = microseconds / 1'000'000;
  tm local{};
  ::localtime_r(&whole, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local)};
}

class Logs {
 public:
  explicit Logs(const JobCommandOptions& options) : options_(options) {}

  // Adds files not seen yet: from their last lines, or, in a later round, from their beginning.
  void take(const std::vector<LogFile>& files) {
    constexpr int64_t kAll = INT64_MAX;
    for (const LogFile& file : files) {
      if (!has(file)) add(file, Tail(file.path, is_first_ ? options_.lines : kAll));
    }
    is_first_ = false;
  }
  // Adds files from the time `since` on; warns where the lines have no timestamps.
  void take_since(const std::vector<LogFile>& files, int64_t since) {
    bool is_any = false;
    for (const LogFile& file : files) {
      const LogBegin begin = begin_of(file, since);
      if (begin.how == LogBegin::How::Nothing) {
        add(file, Tail(file.path, 0));
        continue;
      }
      is_any = true;
      if (begin.how == LogBegin::How::Here) {
        add(file, Tail::from(file.path, begin.at));
        continue;
      }
      log::warning(file.path + ": its lines carry no times; here are its last " +
                   std::to_string(options_.lines) + ", the last of them written at " +
                   clock_text(begin.written));
      add(file, Tail(file.path, options_.lines));
    }
    if (!is_any) log::warning("no log file was written since " + clock_text(since));
    is_first_ = false;
  }
  void show_new(bool takes_rest) {
    for (auto& [tail, before] : tails_) {
      for (std::string text; !(text = tail.next(takes_rest)).empty();) show(text, before);
    }
    std::fflush(stdout);
  }

 private:
  bool has(const LogFile& file) const {
    return std::ranges::any_of(tails_, [&](auto& t) { return t.first.path() == file.path; });
  }
  void add(const LogFile& file, Tail tail) {
    const std::string prefix = options_.rank ? "" : "[" + std::to_string(file.rank) + "]: ";
    tails_.emplace_back(std::move(tail), prefix);
  }

  const JobCommandOptions& options_;
  bool is_first_ = true;
  std::list<std::pair<Tail, std::string>> tails_;  // with the prefix of each line
};

int64_t now_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

// Adds the files that exist now. Error: there are none.
Status take_first(const std::vector<LocalJob>& agents, const JobCommandOptions& options,
                  Logs& logs) {
  std::optional<int64_t> since;
  if (!options.since.empty()) {
    Result<int64_t> when = parse_since(options.since, now_us());
    if (!when) return when.error();
    since = *when;
  } else if (options.rank) {  // with --since the rank may be one of an earlier round
    if (Result<LocalWorker> found = worker_of(agents, *options.rank); !found) return found.error();
  }
  const std::vector<LogFile> files =
      since ? all_files(agents, options) : living_files(agents, options);
  if (files.empty()) {
    return Error{ErrorKind::BadValue,
                 "there are no log files: no worker that is meant runs here, or the job keeps none "
                 "(--log-dir DIR --tee 3 does)"};
  }
  since ? logs.take_since(files, *since) : logs.take(files);
  return {};
}

}  // namespace

Status logs(const JobCommandOptions& options) {
  if (options.is_all_nodes) return all_nodes_logs(options);
  Result<std::vector<LocalJob>> agents = agents_of(local_jobs(), options.job);
  if (!agents) return agents.error();
  Logs logs(options);
  if (Status ok = take_first(*agents, options, logs); !ok) return ok;
  const std::string run_id = agents->front().view.run_id;
  logs.show_new(!options.follows);
  for (int n = 1; options.follows; ++n) {
    ::poll(nullptr, 0, kPollMilliseconds);
    logs.show_new(false);
    if (n % kPollsPerQuery != 0) continue;
    agents = agents_of(local_jobs(), run_id);
    if (!agents) break;
    logs.take(living_files(*agents, options));
  }
  logs.show_new(true);
  return {};
}

}  // namespace cpprun
