#include "agent/process/diagnostics/process_sampler.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "agent/process/proc_files.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr uint64_t kPageBytes = 4096;  // size of a page that a major fault reads from a file

uint64_t number_of(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Children of all its threads.
void append_children(int pid, std::vector<int>& pids) {
  const std::string tasks = proc_path(pid, "task/");
  const UniqueFd folder(::open(tasks.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return;
  for_each_entry(folder.get(), [&](const char* name, bool) {
    if (name[0] == '.' || pids.size() >= limits::kProcessesSampled) return;
    const std::string children = read_small_file(tasks + name + "/children");
    for (const std::string& word : text::split(children, ' ')) {
      if (const uint64_t child = number_of(word)) pids.push_back(static_cast<int>(child));
    }
  });
}

}  // namespace

WorkerObservation::State parse_state(std::string_view status) {
  const std::string_view tracer = value_of(status, "TracerPid:");
  if (!tracer.empty() && tracer != "0") return WorkerObservation::State::Traced;
  const std::string_view state = value_of(status, "State:");
  if (state.starts_with('T')) return WorkerObservation::State::Stopped;
  if (state.starts_with('t')) return WorkerObservation::State::Traced;
  if (state.starts_with('D')) return WorkerObservation::State::Blocked;
  return WorkerObservation::State::Going;
}

ResourceUsage parse_usage(std::string_view stat, std::string_view io, long ticks_per_second) {
  ResourceUsage used;
  used.bytes = number_of(value_of(io, "rchar:")) + number_of(value_of(io, "wchar:"));
  const size_t name_end = stat.rfind(") ");  // the name may hold any byte
  if (name_end == std::string_view::npos || ticks_per_second <= 0) return used;
  const std::vector<std::string> words = text::split(stat.substr(name_end + 2), ' ');
  if (words.size() < 15) return used;
  used.bytes += number_of(words[9]) * kPageBytes;  // major faults
  uint64_t ticks = 0;
  for (size_t field = 11; field < 15; ++field) ticks += number_of(words[field]);
  used.cpu = seconds(static_cast<double>(ticks) / static_cast<double>(ticks_per_second));
  return used;
}

void sample_process(WorkerObservation& worker) {
  static const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  worker.state = parse_state(read_small_file(proc_path(worker.pid, "status")));
  std::vector<int> pids{worker.pid};
  for (size_t i = 0; i < pids.size(); ++i) {
    const ResourceUsage used =
        parse_usage(read_small_file(proc_path(pids[i], "stat")),
                    read_small_file(proc_path(pids[i], "io")), ticks_per_second);
    worker.cpu += used.cpu;
    worker.bytes += used.bytes;
    append_children(pids[i], pids);
  }
}

}  // namespace cpprun
