#include "launcher/cpprunctl/events/events.hpp"

#include <fcntl.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "common/limits/server.hpp"
#include "common/machine/unique_fd.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/event_text.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun {
namespace {

constexpr int kPollMilliseconds = 50;  // no inotify: the file may be on a network file system
constexpr int kFindTries = 5;          // jobs that end between the search and the opening

struct EventsFile {
  std::string path;
  UniqueFd fd;
};

// The run folder of the job of that name on this machine; the name itself if a file has it or there
// is no such job.
std::string path_of(const std::string& named) {
  std::error_code error;
  if (named.empty() || std::filesystem::exists(named, error)) return named;
  const auto agents = ctl::agents_of(ctl::local_jobs(), named);
  return agents && !agents->front().view.run_folder.empty() ? agents->front().view.run_folder
                                                            : named;
}

Result<EventsFile> open_events(const std::string& named) {
  const std::string place = path_of(named);
  for (int tries = 1;; ++tries) {
    Result<std::string> path = find_events(place);
    if (!path) return path.error();
    UniqueFd file(::open(path->c_str(), O_RDONLY | O_CLOEXEC));
    if (file.is_open()) return EventsFile{std::move(*path), std::move(file)};
    const bool has_ended = errno == ENOENT && named.empty();  // the job removed its folder
    if (!has_ended || tries == kFindTries) return system_error("cannot read " + *path, errno);
  }
}

// Appends the next bytes; 0 at the current end, negative on error.
ssize_t read_more(int file, std::string& text) {
  std::array<char, 64 * 1024> bytes{};
  ssize_t got = 0;
  do {
    got = ::read(file, bytes.data(), bytes.size());
  } while (got < 0 && errno == EINTR);
  if (got > 0) text.append(bytes.data(), static_cast<size_t>(got));
  return got;
}

// Skips lines that are no event, such as a partial line from a full disk.
void show(const std::string& line, const EventsOptions& options) {
  if (options.is_json) {
    if (ctl::event_text(line, true)) ctl::print(line + "\n");
    return;
  }
  const auto text = ctl::event_text(line, options.is_verbose, ctl::has_color());
  if (text) ctl::print_unchanged(*text);
}

// Prints the complete lines in `text` and keeps the rest. True: the run has finished.
bool show_lines(std::string& text, const EventsOptions& options) {
  size_t begin = 0;
  bool has_finished = false;
  for (size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    show(line, options);
    has_finished = has_finished || line.find("\"event\":\"finished\"") != std::string::npos;
  }
  text.erase(0, begin);
  if (text.size() > limits::kControlFrameBytes * 16) text.clear();  // not an event: too long
  std::fflush(stdout);
  return has_finished;
}

}  // namespace

Status show_events(const EventsOptions& options) {
  Result<EventsFile> file = open_events(options.path);
  if (!file) return file.error();
  std::string text;
  bool has_finished = false;
  for (;;) {
    const ssize_t got = read_more(file->fd.get(), text);
    if (got < 0) return system_error("cannot read " + file->path, errno);
    has_finished = show_lines(text, options) || has_finished;
    if (got > 0) continue;
    if (!options.follows || has_finished) return {};
    ::poll(nullptr, 0, kPollMilliseconds);
  }
}

}  // namespace cpprun
