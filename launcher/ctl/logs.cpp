// The verb logs: workers' log files on this machine.
#include <poll.h>

#include <map>

#include "common/text.hpp"
#include "launcher/ctl/job_verbs.hpp"
#include "launcher/ctl/local_jobs.hpp"
#include "launcher/ctl/output.hpp"
#include "launcher/ctl/tail.hpp"

namespace cpprun {
namespace {

using namespace ctl;

constexpr int kLook = 100;  // milliseconds between two looks at the files
constexpr int kLooksOfJob =
    10;  // at the files, for one question to the agent: other rounds have others

// What of a job is shown, by path: the words before each line.
using Files = std::map<std::string, std::string>;

Files files_of(const std::vector<LocalJob>& agents, const JobOptions& options) {
  Files files;
  for (const LocalJob& job : agents) {
    if (!options.node.empty() && job.view.node != options.node) continue;
    for (const operators::WorkerView& worker : job.view.workers) {
      if (options.rank && worker.rank != *options.rank) continue;
      const std::string who = options.rank ? "" : "[" + std::to_string(worker.rank) + "]: ";
      for (const std::string& path : {worker.stdout_file, worker.stderr_file}) {
        if (!path.empty()) files[path] = who;
      }
    }
  }
  return files;
}

void show(const std::string& text, const std::string& before) {
  if (text.empty()) return;
  if (before.empty()) return print(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1);
    out += before + text.substr(at, end + 1 - at);
    at = end + 1;
  }
  if (!out.ends_with('\n')) out += '\n';
  print(out);
}

class Logs {
 public:
  explicit Logs(int64_t lines) : lines_(lines) {}

  // Files that are new to us are shown from their last lines on, or in a later round whole.
  void take(const Files& files) {
    constexpr int64_t kAll = INT64_MAX;
    for (const auto& [path, before] : files) {
      tails_.try_emplace(path, Tail(path, is_first_ ? lines_ : kAll), before);
    }
    is_first_ = false;
  }
  void show_new(bool takes_rest) {
    for (auto& [path, shown] : tails_) {
      for (std::string text; !(text = shown.first.next(takes_rest)).empty();) {
        show(text, shown.second);
      }
    }
    std::fflush(stdout);
  }

 private:
  int64_t lines_;
  bool is_first_ = true;
  std::map<std::string, std::pair<Tail, std::string>> tails_;
};

}  // namespace

Status logs(const JobOptions& options) {
  Result<std::vector<LocalJob>> agents = agents_of(local_jobs(), options.job);
  if (!agents) return agents.error();
  if (options.rank) {
    if (Result<LocalWorker> found = worker_of(*agents, *options.rank); !found) return found.error();
  }
  const Files files = files_of(*agents, options);
  if (files.empty()) {
    return Error{ErrorKind::BadValue,
                 "there are no log files: no worker that is meant runs here, or the job keeps none "
                 "(--log-dir DIR --tee 3 does)"};
  }
  const std::string run_id = agents->front().view.run_id;
  Logs logs(options.lines);
  logs.take(files);
  logs.show_new(!options.follows);
  for (int n = 1; options.follows; ++n) {
    ::poll(nullptr, 0, kLook);
    logs.show_new(false);
    if (n % kLooksOfJob != 0) continue;
    agents = agents_of(local_jobs(), run_id);
    if (!agents) break;
    logs.take(files_of(*agents, options));
  }
  logs.show_new(true);
  return {};
}

}  // namespace cpprun
