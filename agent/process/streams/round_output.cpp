#include "agent/process/streams/round_output.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/process/streams/terminal.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {

RoundOutput::RoundOutput(boost::asio::io_context& loop, std::shared_ptr<LoopPoster> poster,
                         Events events)
    : poster_(std::move(poster)),
      events_(std::move(events)),
      drain_timer_(loop, [this] { on_drained(); }),
      window_signals_(loop) {}

Status RoundOutput::open() {
  if (output_) return {};
  Output::Events events;
  events.on_finishing = [this, way = poster_](uint64_t round) {
    LoopPoster::post(way, [this, round] {
      if (round == round_) on_finishing();
    });
  };
  events.on_output_drained = [this, way = poster_](uint64_t round) {
    LoopPoster::post(way, [this, round] {
      if (round != round_) return;
      is_written_ = true;
      on_drained();
    });
  };
  events.on_stdout_closed = [this, way = poster_](bool continues) {
    LoopPoster::post(way, [this, continues] { events_.on_stdout_closed(continues); });
  };
  events.on_resized = [this, way = poster_] {
    LoopPoster::post(way, [this] { events_.on_resized(); });
  };
  events.on_tail = [this, way = poster_](int rank, std::vector<std::string> lines) {
    LoopPoster::post(way, [this, rank, lines = std::move(lines)] { events_.on_tail(rank, lines); });
  };
  Result<std::unique_ptr<Output>> output = Output::start(std::move(events));
  if (!output) return output.error();
  output_ = std::move(*output);
  return {};
}

void RoundOutput::begin_round() {
  ++round_;
  with_stderr_.clear();
  if (output_) output_->begin_round();
}

void RoundOutput::add(std::vector<OutputStream> streams) {
  if (streams.empty()) return;
  is_drained_ = is_written_ = false;
  for (const OutputStream& stream : streams) {
    if (stream.is_stderr) with_stderr_.insert(stream.local_rank);
    if (stream.is_terminal && !std::exchange(has_terminals_, true)) watch_window();
  }
  output_->add(std::move(streams));
}

void RoundOutput::on_worker_exit(int local_rank) {
  if (output_) output_->on_worker_exit(local_rank);
}

void RoundOutput::finish_all() {
  if (is_written_) return on_drained();
  is_drained_ = false;
  output_->finish(++round_);
  drain_timer_.set(boot_now() + limits::kOutputEndTimeout);
}

void RoundOutput::on_finishing() {
  if (!is_drained_) drain_timer_.set(limit_);
}

void RoundOutput::limit_wait(Duration most) {
  if (is_drained_) return;
  limit_ = std::min(limit_, boot_now() + most);
  drain_timer_.set(std::min(drain_timer_.at(), limit_));
}

void RoundOutput::on_drained() {
  limit_ = Instant::never();
  drain_timer_.set(limit_);
  is_drained_ = true;
  events_.on_drained();
}

// Workers have no controlling terminal, so the kernel does not send them SIGWINCH.
void RoundOutput::watch_window() {
  boost::system::error_code ignored;
  window_signals_.add(SIGWINCH, ignored);
  window_signals_.async_wait(lifetime_.guard([this](boost::system::error_code error, int) {
    if (error) return;
    resize_terminals();
    watch_window();
  }));
}

void RoundOutput::resize_terminals() {
  const int console = ::isatty(STDOUT_FILENO) == 1 ? STDOUT_FILENO : STDERR_FILENO;
  const Window window = window_of(console);
  if (output_ && window.rows > 0) output_->resize(window.rows, window.columns);
}

}  // namespace cpprun
