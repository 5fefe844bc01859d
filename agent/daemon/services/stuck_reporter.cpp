#include "agent/daemon/services/stuck_reporter.hpp"

#include <algorithm>

#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {

void StuckReporter::inspect(std::vector<StuckProcess> processes) {
  if (!processes_.empty() || processes.empty()) return;
  processes_ = std::move(processes);
  processes_.resize(std::min(processes_.size(), limits::kStuckProcesses));
  const auto read = [inspected = processes_] {
    std::vector<std::string> lines;
    for (const StuckProcess& process : inspected) lines.push_back(describe(process));
    return lines;
  };
  const auto done = [this, generation = ++generation_](const std::vector<std::string>& lines) {
    if (generation == generation_) finish(lines);
  };
  if (Status started = background_.run(read, done); !started) return on_time();
  timer_.set(boot_now() + limits::kStuckReadTimeout);
}

void StuckReporter::on_time() {
  std::vector<std::string> lines;
  for (const StuckProcess& process : processes_) {
    lines.push_back(name_of(process) +
                    " has not ended after SIGKILL, and the kernel does not show "
                    "what it waits for");
  }
  finish(lines);
}

void StuckReporter::finish(const std::vector<std::string>& lines) {
  ++generation_;
  timer_.set(Instant::never());
  processes_.clear();
  done_(lines);
}

}  // namespace cpprun
