#include "agent/process/streams/stream_fds.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/process/streams/console.hpp"
#include "agent/process/streams/terminal.hpp"
#include "common/check.hpp"
#include "common/limits/agent.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

// The agent's own: standard streams, loop, output thread, reaper process, store, connections of one
// node.
constexpr size_t kOwnDescriptors = 32;
// Per worker: pidfd, two read ends of pipes, two log files.
constexpr size_t kPerWorker = 5;

Result<LogFile> open_log(const std::string& name) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY;
  UniqueFd file(::open(name.c_str(), flags, 0666));
  if (!file.is_open()) return system_error("cannot write the log file " + name, errno);
  return LogFile{name, std::move(file)};
}

Status open_pipe(UniqueFd& read_end, UniqueFd& write_end) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) < 0)
    return system_error("cannot make a pipe for a worker's output", errno);
  read_end.reset(fds[0]);
  write_end.reset(fds[1]);
  ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
  // Larger than the default 64 KiB, for fewer context switches. The kernel may refuse (the user's
  // quota for pipes), which does no harm.
  ::fcntl(fds[0], F_SETPIPE_SZ, static_cast<int>(limits::kOutputBufferBytes));
  return {};
}

// The worker gets a terminal of its own where the agent's stream is a terminal, otherwise a pipe.
Status open_line(bool is_stderr, OutputStream& ours, UniqueFd& theirs) {
  const int console = is_stderr ? STDERR_FILENO : STDOUT_FILENO;
  if (ours.to_console && ::isatty(console) == 1) {
    if (std::optional<Terminal> made = open_terminal(window_of(console))) {
      ours.pipe = std::move(made->master);
      ours.is_terminal = true;
      theirs = std::move(made->slave);
      return {};
    }
  }
  return open_pipe(ours.pipe, theirs);
}

Result<StreamFds> open_simple(const std::string& file, const LogFiles& files) {
  StreamFds fds;
  if (!file.empty()) {
    fds.child = files.at(file)->fd.get();
    return fds;
  }
  fds.held.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!fds.held.is_open()) return system_error("cannot open /dev/null", errno);
  fds.child = fds.held.get();
  return fds;
}

Result<StreamFds> open_carried(const WorkerSpec& worker, const StreamRoute& route, bool is_stderr,
                               const LogFiles& files) {
  OutputStream stream;
  stream.local_rank = static_cast<int>(worker.local_rank.value);
  stream.is_stderr = is_stderr;
  stream.to_console = route.to_console;
  stream.prefix = route.prefix;
  if (!route.file.empty()) stream.file = files.at(route.file);
  if (!route.duplicate_file.empty()) {
    stream.duplicate_file = files.at(route.duplicate_file);
    stream.duplicate_filters = route.duplicate_filters;
  }
  StreamFds fds;
  if (Status made = open_line(is_stderr, stream, fds.held); !made) return made.error();
  fds.child = fds.held.get();
  fds.ours = std::move(stream);
  return fds;
}

// The stream goes to the console only, unchanged.
bool is_plain(const StreamRoute& route) {
  return route.to_console && route.file.empty() && route.prefix.empty() &&
         route.duplicate_file.empty();
}

bool is_carried(const StreamRoute& route) {
  return route.to_console || !route.duplicate_file.empty();
}

Result<StreamFds> open_stream(const WorkerSpec& worker, bool is_stderr, const LogFiles& files) {
  const StreamRoute& route = is_stderr ? worker.err : worker.out;
  return is_carried(route) ? open_carried(worker, route, is_stderr, files)
                           : open_simple(route.file, files);
}

}  // namespace

Result<LogFiles> open_log_files(const std::vector<StreamRoute>& routes) {
  LogFiles files;
  for (const StreamRoute& route : routes) {
    for (const std::string& name : {route.file, route.duplicate_file}) {
      if (name.empty() || files.contains(name)) continue;
      Result<LogFile> file = open_log(name);
      if (!file) return file.error();
      files[name] = std::make_shared<LogFile>(std::move(*file));
    }
  }
  return files;
}

bool is_out_of_descriptors(const Error& error) {
  return error.text.find(system_error("", EMFILE).text.substr(2)) != std::string::npos;
}

bool passes_agent(const WorkerSpec& worker, bool is_alone) {
  const bool is_own_stdout = is_alone && is_plain(worker.out);
  return is_carried(worker.err) || (is_carried(worker.out) && !is_own_stdout);
}

std::string own_stderr_file(const WorkerSpec& worker) {
  return is_carried(worker.err) ? "" : worker.err.file;
}

Result<WorkerStreams> open_streams(const WorkerSpec& worker, bool is_alone, const LogFiles& files) {
  WorkerStreams both;
  Result<StreamFds> err = open_stream(worker, true, files);
  if (!err) return err.error();
  both.err = std::move(*err);
  const bool is_err_alone = is_alone && is_plain(worker.err);
  if (is_err_alone) both.err.ours->is_alone = true;
  if (is_alone && is_plain(worker.out)) {
    const bool is_same = is_err_alone && is_same_place(STDOUT_FILENO, STDERR_FILENO);
    both.out.child = is_same ? both.err.child : STDOUT_FILENO;
    if (is_same) both.err.ours->has_stdout = true;
    return both;
  }
  Result<StreamFds> out = open_stream(worker, false, files);
  if (!out) return out.error();
  both.out = std::move(*out);
  return both;
}

Error descriptor_error(size_t workers) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const size_t needed = kOwnDescriptors + workers * kPerWorker;
  return Error{ErrorKind::System, "too many open files: " + text::count(workers, "worker") +
                                      (workers == 1 ? " needs" : " need") + " up to " +
                                      std::to_string(needed) + " descriptors, the limit is " +
                                      std::to_string(limit.rlim_cur) +
                                      "; raise it with ulimit -n " + std::to_string(needed)};
}

void fill_standard_streams() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) CPPRUN_CHECK(::open("/dev/null", O_RDWR) == fd);
  }
}

}  // namespace cpprun
