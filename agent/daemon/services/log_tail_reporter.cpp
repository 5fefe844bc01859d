#include "agent/daemon/services/log_tail_reporter.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "common/limits/dashboard.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/last_lines.hpp"

namespace cpprun {
namespace {

struct ReadRequest {
  control::LogLines lines;
  LogTailReporter::Files files;
};

// Long lines are cut.
std::vector<std::string> lines_of(const std::string& path) {
  constexpr size_t kBytes = limits::kTailLines * limits::kLineBytesReported;
  return read_last_lines(path, kBytes, LastLines(limits::kTailLines, limits::kLineBytesReported));
}

std::vector<control::LogLines> read_all(std::vector<ReadRequest> requests) {
  std::vector<control::LogLines> all;
  for (ReadRequest& request : requests) {
    request.lines.has_files = !request.files.out.empty() || !request.files.err.empty();
    request.lines.out = lines_of(request.files.out);
    request.lines.err = lines_of(request.files.err);
    all.push_back(std::move(request.lines));
  }
  return all;
}

}  // namespace

std::string attempt_folder_of(const LogTailReporter::Files& files) {
  const std::string& file = files.out.empty() ? files.err : files.out;
  return std::filesystem::path(file).parent_path().parent_path().string();
}

void LogTailReporter::on_tail(const control::LogTailRequest& tail) {
  if (tail.local_rank < 0 || tail.local_rank >= callbacks_.workers) return;
  const bool is_known = watched_until_.contains(tail.local_rank);
  if (!is_known && watched_until_.size() >= limits::kStreams) return;
  if (!is_known)
    last_sent_.erase(tail.local_rank);  // a new reader needs the lines even if unchanged
  watched_until_[tail.local_rank] =
      boot_now() + std::clamp(tail.lasts, Duration{}, limits::kWatchDuration);
  if (!is_known && !is_reading_) read_files();
}

void LogTailReporter::on_disconnected() {
  watched_until_.clear();
  last_sent_.clear();
  timer_.set(Instant::never());
}

// Reads with one thread at a time, even if the disk hangs.
void LogTailReporter::read_files() {
  std::erase_if(watched_until_,
                [now = boot_now()](const auto& entry) { return entry.second <= now; });
  if (watched_until_.empty() || is_reading_) return;
  is_reading_ = true;
  std::vector<ReadRequest> requests;
  for (const auto& [local_rank, until] : watched_until_) {
    ReadRequest& request = requests.emplace_back();
    request.lines.round = callbacks_.round();
    request.lines.local_rank = local_rank;
    request.files = callbacks_.files(static_cast<int>(local_rank));
  }
  const auto done = [this](const auto& lines_read) { on_read(lines_read); };
  const auto read = [requests = std::move(requests)] { return read_all(requests); };
  if (!background_.run(read, done)) on_read({});
}

void LogTailReporter::on_read(const std::vector<control::LogLines>& lines_read) {
  is_reading_ = false;
  for (const control::LogLines& lines : lines_read) {
    const auto sent = last_sent_.find(lines.local_rank);
    if (!watched_until_.contains(lines.local_rank) ||
        (sent != last_sent_.end() && sent->second == lines)) {
      continue;
    }
    callbacks_.send(lines);
    last_sent_[lines.local_rank] = lines;
  }
  if (!watched_until_.empty()) timer_.set(boot_now() + limits::kTailEvery);
}

}  // namespace cpprun
