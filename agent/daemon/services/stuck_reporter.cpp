#include "agent/daemon/services/stuck_reporter.hpp"

#include <algorithm>
#include <utility>

#include "agent/daemon/loop_poster.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {

StuckReporter::StuckReporter(boost::asio::io_context& loop, Done done)
    : done_(std::move(done)),
      timer_(loop, [this] { on_time(); }),
      poster_(std::make_shared<LoopPoster>(loop)) {}

StuckReporter::~StuckReporter() { poster_->close(); }

void StuckReporter::inspect(std::vector<StuckProcess> processes) {
  if (!processes_.empty() || processes.empty()) return;
  processes_ = std::move(processes);
  const size_t shown = std::min(processes_.size(), limits::kStuckProcesses);
  const std::vector<StuckProcess> shown_processes(
      processes_.begin(), processes_.begin() + static_cast<ptrdiff_t>(shown));
  const auto run = [this, shown_processes, inspect = ++generation_, way = poster_] {
    std::vector<std::string> lines;
    for (const StuckProcess& process : shown_processes) lines.push_back(describe(process));
    LoopPoster::post(way, [this, inspect, lines] {
      if (inspect == generation_) finish(lines);
    });
  };
  if (Status started = start_detached_thread(run); !started) return on_time();
  timer_.set(boot_now() + limits::kStuckReadTimeout);
}

void StuckReporter::on_time() {
  std::vector<std::string> lines;
  for (const StuckProcess& process : processes_) {
    if (lines.size() >= limits::kStuckProcesses) break;
    lines.push_back(name_of(process) +
                    " has not ended after SIGKILL, and the kernel does not say "
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
