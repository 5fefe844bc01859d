// `cpprunctl goodput`: how a job of this machine has used its time.
#include <fstream>
#include <string>

#include "common/limits/admin.hpp"
#include "launcher/cpprunctl/events/events.hpp"
#include "launcher/cpprunctl/jobs/job_commands.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/goodput_view.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun {
namespace {

struct Found {
  std::string event;
  bool is_running = false;
};

// The newest `goodput` event of the file.
Result<Found> last_event(const std::string& path) {
  std::ifstream file(path);
  Found found;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"event\":\"goodput\"") != std::string::npos) found.event = line;
  }
  if (!found.event.empty()) return found;
  return Error{ErrorKind::BadValue, path + " has no event of a round that is over yet"};
}

// Of the running job of that name, else of the run folder of that name.
Result<Found> find_event(const std::string& named) {
  const auto agents = ctl::agents_of(ctl::local_jobs(), named);
  if (agents && !agents->empty()) {
    Result<std::string> body =
        ctl::ask(agents->front().agent, {"goodput", {}}, limits::kAdminReplyTimeout);
    if (!body) return body.error();
    return Found{std::move(*body), true};
  }
  const Result<std::string> path = find_events(named);
  if (!path) return path.error();
  return last_event(*path);
}

}  // namespace

Status goodput(const JobCommandOptions& options) {
  Result<Found> found = find_event(options.job);
  if (!found) return found.error();
  const auto view = ctl::goodput_view(found->event);
  if (!view) return Error{ErrorKind::Protocol, "the answer is no goodput event"};
  ctl::print(options.is_json ? found->event + "\n" : ctl::goodput_text(*view, found->is_running));
  return {};
}

}  // namespace cpprun
