#include "agent/process/exit_reporter.hpp"

#include "agent/process/diagnostics/error_file_reader.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/last_lines.hpp"

namespace cpprun {

ExitReporter::ExitReporter(boost::asio::io_context& loop, std::shared_ptr<LoopPoster> poster,
                           std::shared_ptr<IoThread> io, Events events)
    : poster_(std::move(poster)),
      io_(std::move(io)),
      events_(std::move(events)),
      timer_(loop, [this] {
        report();
        events_.on_progress();
      }) {}

void ExitReporter::add(WorkerExit end, const Sources& sources) {
  const int pid = end.pid;
  const int rank = static_cast<int>(end.local_rank.value);
  const Instant now = end.ended_at;
  const bool has_file = !sources.error_file.empty();
  end.error =
      has_file && !sources.reported ? late_error_file(sources.error_file) : sources.reported;
  ends_.push(std::move(end), sources.has_lines ? now + limits::kLastLinesTimeout : Instant::never(),
             has_file ? now + limits::kErrorFileTimeout : Instant::never());
  if (sources.has_lines) ask_last_lines(rank, sources.stderr_file);
  if (has_file) read_error(pid, sources.error_file, sources.reported);
}

// The exit waits for the file.
void ExitReporter::read_error(int pid, const std::string& path,
                              const std::optional<ErrorReport>& reported) {
  const auto done = [this, pid, reported](std::optional<ErrorReport> read) {
    ends_.on_error(pid, read ? std::move(read) : reported);
    report();
    events_.on_progress();
  };
  const bool is_posted = io_->post([way = poster_, path, done] {
    LoopPoster::post(way, [done, report = read_error_file(path)] { done(report); });
  });
  if (!is_posted) ends_.on_error(pid, reported ? reported : late_error_file(path));
}

// on_lines() follows, but not if the I/O thread has too much to do.
void ExitReporter::ask_last_lines(int local_rank, const std::string& stderr_file) {
  if (stderr_file.empty()) return events_.ask_tail(local_rank);
  const auto read = [way = poster_, this, local_rank, stderr_file] {
    std::vector<std::string> lines =
        read_last_lines(stderr_file, limits::kLastLinesReadBytes,
                        LastLines(limits::kLastLines, limits::kLastLineBytes));
    LoopPoster::post(way,
                     [this, local_rank, lines = std::move(lines)] { on_lines(local_rank, lines); });
  };
  if (!io_->post(read)) ends_.on_lines(local_rank, {});
}

void ExitReporter::on_lines(int local_rank, std::vector<std::string> lines) {
  ends_.on_lines(local_rank, std::move(lines));
  report();
  events_.on_progress();
}

void ExitReporter::report() {
  while (ends_.is_ready(boot_now())) {
    const WorkerExit end = ends_.pop();
    events_.on_end(end);
  }
  timer_.set(ends_.next_deadline());
}

}  // namespace cpprun
