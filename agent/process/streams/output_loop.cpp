#include "agent/process/streams/output_loop.hpp"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "agent/process/streams/terminal.hpp"
#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {
namespace {

constexpr uint64_t kWake = 0, kOut = 1, kErr = 2;
// Reads of an ended worker's pipe, which another process may hold open and fill.
constexpr int kLateReads = 16;

bool has_stdout(const OutputStream& stream) { return !stream.is_stderr || stream.has_stdout; }

}  // namespace

OutputLoop::OutputLoop(const Output::Events& events, UniqueFd epoll)
    : events_(events), epoll_(std::move(epoll)) {
  out_.console = std::make_unique<Console>(STDOUT_FILENO);
  if (!is_same_place(STDOUT_FILENO, STDERR_FILENO)) {
    err_.console = std::make_unique<Console>(STDERR_FILENO);
  }
}

void OutputLoop::watch(int fd, uint64_t key, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void OutputLoop::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

int OutputLoop::timeout(Instant now) const {
  Instant next = Instant::never();
  for (const auto& [key, pump] : pumps_) {
    next = std::min(next, pump->part_deadline());
    if (!pump->is_paused) next = std::min(next, pump->close_at);
  }
  if (next.is_never()) return -1;
  const int64_t ms = (next - now + std::chrono::nanoseconds(999'999)).count() / 1'000'000;
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000));
}

bool OutputLoop::wait_and_work(int wake_fd) {
  if (wake_fd_ < 0) watch(wake_fd_ = wake_fd, kWake, EPOLLIN);
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 timeout(boot_now()));
  const Instant now = boot_now();
  bool is_woken = false;
  for (int i = 0; i < count; ++i) {
    const uint64_t key = events[static_cast<size_t>(i)].data.u64;
    if (key == kWake) is_woken = true;
    if (const auto pump = pumps_.find(key); pump != pumps_.end()) on_readable(pump, now);
  }
  on_time(now);
  settle();
  return is_woken;
}

StreamPump::Outcome OutputLoop::read_once(StreamPump& pump, Instant now) {
  return pump.read_once(buffer_.get(), limits::kOutputBufferBytes, now);
}

void OutputLoop::on_readable(Pumps::iterator pump, Instant now) {
  if (pump->second->must_wait()) return;  // paused in settle()
  const auto outcome = read_once(*pump->second, now);
  if (outcome == StreamPump::Outcome::End) close(pump);
}

OutputLoop::Pumps::iterator OutputLoop::close(Pumps::iterator pump) {
  if (!pump->second->is_paused) unwatch(pump->second->fd());
  const OutputStream& stream = pump->second->stream();
  if (stream.is_stderr) tails_[stream.local_rank] = pump->second->last_lines();
  return pumps_.erase(pump);
}

void OutputLoop::on_time(Instant now) {
  for (auto pump = pumps_.begin(); pump != pumps_.end();) {
    if (now >= pump->second->part_deadline()) pump->second->show_part();
    if (now >= pump->second->close_at && !pump->second->is_paused) {
      drain_late(*pump->second, now);
      pump = close(pump);
    } else {
      ++pump;
    }
  }
}

void OutputLoop::drain_late(StreamPump& pump, Instant now) {
  for (int i = 0; i < kLateReads; ++i) {
    if (read_once(pump, now) != StreamPump::Outcome::More) return;
  }
}

void OutputLoop::flush(ConsoleState& state, uint64_t key) {
  Console& console = *state.console;
  if (console.is_empty() && !state.is_watched) return;
  const Console::Outcome outcome = console.flush();
  const bool is_of_messages = key == kErr || !err_.console;
  if (is_of_messages) log::set_within_line(console.is_within_line());
  if (const int error = console.take_error())
    on_file_error(key == kOut ? "stdout" : "stderr", error);
  const bool is_blocked = outcome == Console::Outcome::Blocked;
  if (is_blocked && !state.is_watched) watch(console.poll_fd(), key, EPOLLOUT);
  if (!is_blocked && state.is_watched) unwatch(console.poll_fd());
  state.is_watched = is_blocked;
  if (outcome == Console::Outcome::Closed) on_console_closed(state);
  pause_or_resume(state);
}

void OutputLoop::pause_or_resume(ConsoleState& state) {
  const bool is_full = state.console->is_full();
  if (is_full == state.was_full) return;
  state.was_full = is_full;
  for (auto& [key, pump] : pumps_) {
    if (pump->console() != state.console.get() || pump->is_paused == is_full) continue;
    pump->is_paused = is_full;
    if (is_full) unwatch(pump->fd());
    if (!is_full) watch(pump->fd(), key, EPOLLIN);
  }
}

void OutputLoop::on_console_closed(const ConsoleState& state) {
  if (&state != &out_) return;  // a closed stderr needs no report and stops no worker
  bool continues = false;
  for (auto pump = pumps_.begin(); pump != pumps_.end();) {
    const OutputStream& stream = pump->second->stream();
    const bool is_concerned = has_stdout(stream) && stream.to_console;
    const bool ends = is_concerned && !pump->second->writes_file();
    continues = continues || (is_concerned && !ends);
    pump = ends ? close(pump) : std::next(pump);
  }
  events_.on_stdout_closed(continues);
}

void OutputLoop::on_file_error(const std::string& name, int error) {
  if (is_file_error_reported_) return;
  is_file_error_reported_ = true;
  Console& console = err_.console ? *err_.console : *out_.console;
  console.add_lines(this, "",
                    "cpprun: writing to " + name + " failed: " + ::strerror(error) +
                        "; the job continues, what cannot be written is lost\n");
}

void OutputLoop::settle() {
  flush(out_, kOut);
  if (err_.console) flush(err_, kErr);
  const bool is_written = out_.console->is_empty() && (!err_.console || err_.console->is_empty());
  if (!finishing_ || !is_written || !has_ended()) return;
  events_.on_output_drained(*std::exchange(finishing_, std::nullopt));
}

Console* OutputLoop::console_of(const OutputStream& stream) {
  if (!stream.to_console) return nullptr;
  return stream.is_stderr && err_.console ? err_.console.get() : out_.console.get();
}

void OutputLoop::add(std::vector<OutputStream> streams) {
  for (OutputStream& stream : streams) {
    Console* console = console_of(stream);
    const bool is_dead = console != nullptr && console->is_closed() && has_stdout(stream);
    // Dropping the pipe closes the stream for the worker from the start.
    if (is_dead && !stream.file) continue;
    const uint64_t key = next_key_++;
    auto pump = std::make_unique<StreamPump>(
        std::move(stream), console,
        [this](const std::string& name, int error) { on_file_error(name, error); });
    pump->is_paused = console != nullptr && console->is_full();
    if (!pump->is_paused) watch(pump->fd(), key, EPOLLIN);
    pumps_.emplace(key, std::move(pump));
  }
}

void OutputLoop::on_worker_exit(int local_rank) {
  const Instant close_at = boot_now() + limits::kOutputAfterExit;
  for (auto& [key, pump] : pumps_) {
    if (pump->stream().local_rank == local_rank) pump->close_at = close_at;
  }
}

void OutputLoop::send_tail(int local_rank) {
  // The newest first: children of a survivor may hold its stream of an earlier round.
  for (auto newest = pumps_.rbegin(); newest != pumps_.rend(); ++newest) {
    const auto& pump = newest->second;
    if (!pump->stream().is_stderr || pump->stream().local_rank != local_rank) continue;
    const Instant now = boot_now();
    for (int i = 0; i < kLateReads && !pump->must_wait(); ++i) {
      if (read_once(*pump, now) != StreamPump::Outcome::More) break;
    }
    events_.on_tail(local_rank, pump->last_lines());
    return;
  }
  events_.on_tail(local_rank, tails_[local_rank]);
}

void OutputLoop::resize(int rows, int columns) {
  for (auto& [key, pump] : pumps_) {
    if (pump->stream().is_terminal) set_window(pump->fd(), {rows, columns});
  }
  events_.on_resized();
}

void OutputLoop::finish(uint64_t round, const std::set<int>& survivors) {
  finishing_ = round;
  survivors_ = survivors;
  events_.on_finishing(round);
}

bool OutputLoop::has_ended() const {
  return std::ranges::all_of(pumps_, [this](const auto& pump) {
    return survivors_.contains(pump.second->stream().local_rank);
  });
}

}  // namespace cpprun
