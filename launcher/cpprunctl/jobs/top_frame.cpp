#include "launcher/cpprunctl/jobs/top_frame.hpp"

#include <algorithm>

#include "common/text.hpp"
#include "launcher/cpprunctl/text/text_table.hpp"

namespace cpprun::ctl {

// In synchronous training all ranks are within one step, and the slowest one delays the others.
std::string slowest_text(const std::vector<LocalJob>& agents) {
  const admin::WorkerView* slowest = nullptr;
  int64_t first = 0;
  const auto key = [](const admin::WorkerView& worker) {
    return std::pair(-worker.progress->step, worker.progress->step_takes);
  };
  for (const LocalJob& job : agents) {
    for (const admin::WorkerView& worker : job.view.workers) {
      if (!worker.progress) continue;
      first = std::max(first, worker.progress->step);
      if (slowest == nullptr || key(*slowest) < key(worker)) slowest = &worker;
    }
  }
  if (slowest == nullptr) return "";
  const Heartbeat& progress = *slowest->progress;
  std::string text = "slowest: rank " + std::to_string(slowest->rank);
  if (progress.step_takes > Duration{}) {
    text += ", " + duration_text(to_seconds(progress.step_takes)) + " a step";
  }
  text += ", at step " + std::to_string(progress.step);
  if (first > progress.step) text += ", " + std::to_string(first - progress.step) + " behind";
  return text + "\n";
}

std::string frame(const std::string& text, size_t rows, size_t columns) {
  std::vector<std::string> lines = text::split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const size_t shown = std::min(lines.size(), std::max<size_t>(rows, 2) - 1);
  std::string out = "\x1b[H";
  for (size_t i = 0; i < shown; ++i) {
    const bool is_cut = i + 1 == shown && shown < lines.size();
    const std::string line =
        is_cut ? "... and " + std::to_string(lines.size() - shown + 1) + " lines more" : lines[i];
    out += line.substr(0, columns) + "\x1b[K\r\n";
  }
  return out + "\x1b[J";
}

}  // namespace cpprun::ctl
