#include "agent/process/diagnostics/trace_collector.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "agent/process/proc_files.hpp"
#include "agent/process/spawn/helper_process.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/machine/regular_file.hpp"
#include "common/machine/unique_fd.hpp"

namespace cpprun {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLookInterval = 20ms;
constexpr size_t kHeaderBytes = 2 * sizeof(uint64_t);  // sizes of the text and of the pickle

struct Request {
  UniqueFd file;
  off_t begin = 0;  // where the dump will stand
};

// Writes one byte into the worker's pipe. Only a pipe, and never waits: the descriptor's number is
// the worker's own word.
std::optional<Request> request_dump(const StackTarget& target) {
  if (!target.trace || target.worker.state != WorkerObservation::State::Going) return std::nullopt;
  const std::string folder = proc_path(target.worker.pid, "fd/");
  const std::string file = folder + std::to_string(target.trace->file);
  const std::string pipe = folder + std::to_string(target.trace->request);
  std::optional<RegularFile> dumps = open_regular_file(file);
  if (!dumps) return std::nullopt;
  Request made{std::move(dumps->fd), dumps->info.st_size};
  struct stat info {};
  const UniqueFd writer(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!writer.is_open() || ::fstat(writer.get(), &info) != 0 || !S_ISFIFO(info.st_mode) ||
      ::write(writer.get(), "d", 1) != 1)
    return std::nullopt;
  return made;
}

std::optional<FlightDump> read_dump(const Request& request) {
  std::array<uint64_t, 2> sizes{};
  if (::pread(request.file.get(), sizes.data(), kHeaderBytes, request.begin) !=
      static_cast<ssize_t>(kHeaderBytes))
    return std::nullopt;
  if (std::ranges::any_of(sizes, [](uint64_t size) { return size > limits::kTraceBytes; }))
    return FlightDump{};
  struct stat info {};
  const auto whole = static_cast<off_t>(kHeaderBytes + sizes[0] + sizes[1]);
  if (::fstat(request.file.get(), &info) != 0 || info.st_size - request.begin < whole)
    return std::nullopt;
  FlightDump dump;
  dump.text.resize(sizes[0]);
  dump.pickle.resize(sizes[1]);
  const off_t at = request.begin + static_cast<off_t>(kHeaderBytes);
  const bool is_read = ::pread(request.file.get(), dump.text.data(), sizes[0], at) ==
                           static_cast<ssize_t>(sizes[0]) &&
                       ::pread(request.file.get(), dump.pickle.data(), sizes[1],
                               at + static_cast<off_t>(sizes[0])) == static_cast<ssize_t>(sizes[1]);
  return is_read ? dump : FlightDump{};
}

}  // namespace

std::vector<FlightDump> collect_traces(const std::vector<StackTarget>& targets) {
  std::vector<std::optional<Request>> requests;
  for (const StackTarget& target : targets) requests.push_back(request_dump(target));
  std::vector<FlightDump> dumps(targets.size());
  const Instant until = boot_now() + limits::kTraceTimeout;
  for (size_t i = 0; i < targets.size(); ++i) {
    while (requests[i]) {
      if (std::optional<FlightDump> dump = read_dump(*requests[i])) {
        dumps[i] = std::move(*dump);
        break;
      }
      if (boot_now() >= until) break;
      ::poll(nullptr, 0, static_cast<int>(kLookInterval / 1ms));
    }
  }
  return dumps;
}

std::string write_traces(const std::string& folder, const std::vector<StackTarget>& targets,
                         const std::vector<FlightDump>& dumps) {
  bool is_any = false;
  for (size_t i = 0; i < dumps.size(); ++i) {
    if (dumps[i].pickle.empty()) continue;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    const std::string file = folder + "/rank_" + std::to_string(targets[i].worker.rank.value);
    if (error || !write_file(file, dumps[i].pickle)) return "";
    is_any = true;
  }
  return is_any ? folder : "";
}

std::string run_torchfrtrace(const std::string& folder) {
  return output_of({"torchfrtrace", folder}, limits::kTraceToolTimeout, limits::kStackTextBytes);
}

}  // namespace cpprun
