#include "agent/daemon/services/file_timer_server.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"
#include "common/signals.hpp"

namespace cpprun {
namespace {

using boost::asio::posix::stream_descriptor;

// A message of torch's file timers; nullopt if `line` is none.
std::optional<agent::TimerRequest> timer_request(std::string_view line) {
  constexpr int kDepthMax = 64;
  constexpr double kPidMax = 1 << 22;
  const auto body = parse_json<nlohmann::json>(line, kDepthMax);
  if (!body.is_object() || !body.contains("version") || body["version"] != 1) return std::nullopt;
  const auto number = [&](const char* name) {
    return body.contains(name) && body[name].is_number() ? body[name].get<double>() : 0.0;
  };
  const double pid = number("pid");
  const double signal = number("signal");
  const bool has_scope = body.contains("scope_id") && body["scope_id"].is_string();
  if (!has_scope || !(pid > 1) || pid > kPidMax || !(signal >= 0) || signal > kLastSignal) {
    return std::nullopt;
  }
  return agent::TimerRequest{static_cast<int>(pid), body["scope_id"].get<std::string>(),
                             number("expiration_time"), static_cast<int>(signal)};
}

double wall_seconds() { return static_cast<double>(wall_now().microseconds) / 1e6; }

Result<UniqueFd> make_fifo(const std::string& path) {
  ::unlink(path.c_str());  // as torch's server does
  if (::mkfifo(path.c_str(), 0600) != 0) {
    return system_error("cannot make the timers' FIFO " + path + " (TORCHELASTIC_TIMER_FILE)",
                        errno);
  }
  // Also open for writing, so that the FIFO has no end of file when the last client closes it.
  UniqueFd fifo(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fifo.is_open()) return system_error("cannot open the timers' FIFO " + path, errno);
  return fifo;
}

}  // namespace

FileTimerServer::FileTimerServer(boost::asio::io_context& loop, IoThread& io, std::string path,
                                 Events events)
    : io_(io),
      path_(std::move(path)),
      events_(std::move(events)),
      late_timer_(loop,
                  [this] {
                    on_made(Error{ErrorKind::Timeout, "cannot make the timers' FIFO " + path_ +
                                                          ": its file system does not answer"});
                  }),
      fifo_(loop),
      timer_(loop, [this] { on_time(); }),
      poster_(std::make_shared<LoopPoster>(loop)) {}

FileTimerServer::~FileTimerServer() {
  poster_->close();
  end_round();
}

void FileTimerServer::prepare(std::function<void()> on_ready) {
  end_round();
  on_ready_ = std::move(on_ready);
  late_timer_.set(boot_now() + limits::kRoundFilesTimeout);
  const auto made = std::make_shared<Result<UniqueFd>>(UniqueFd());
  const auto done = [this, number = ++number_, made] {
    if (number == number_ && on_ready_) on_made(std::move(*made));
  };
  const bool is_posted = io_.post([way = poster_, path = path_, made, done] {
    *made = make_fifo(path);
    LoopPoster::post(way, done);
  });
  if (!is_posted) late_timer_.set(boot_now());  // the I/O thread has waited for long
}

void FileTimerServer::on_made(Result<UniqueFd> made) {
  late_timer_.set(Instant::never());
  ++number_;  // a late answer does not count
  status_ = made ? Status() : Status(made.error());
  if (made) fifo_.assign(made->release());
  std::exchange(on_ready_, nullptr)();
}

Status FileTimerServer::begin_round() {
  if (!status_) return status_;
  read_more();
  return {};
}

void FileTimerServer::end_round() {
  on_ready_ = nullptr;
  late_timer_.set(Instant::never());
  timers_.clear();
  timer_.set(Instant::never());
  text_.clear();
  if (!fifo_.is_open()) return;
  boost::system::error_code ignored;
  fifo_.close(ignored);
  io_.post([path = path_] { ::unlink(path.c_str()); });
}

void FileTimerServer::read_more() {
  fifo_.async_wait(stream_descriptor::wait_read,
                   lifetime_.guard([this](boost::system::error_code error) {
                     if (error || !fifo_.is_open()) return;
                     take_lines();
                     read_more();
                   }));
}

// A message is at most PIPE_BUF long, so that the kernel writes it atomically.
void FileTimerServer::take_lines() {
  std::array<char, PIPE_BUF> buffer;
  const ssize_t size = ::read(fifo_.native_handle(), buffer.data(), buffer.size());
  if (size <= 0) return;
  text_.append(buffer.data(), static_cast<size_t>(size));
  for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
    const auto request = timer_request(text_.substr(0, end));
    text_.erase(0, end + 1);
    if (!request) {
      events_.on_warning("what stands in the timers' FIFO " + path_ + " is no timer; ignored");
    } else if (!timers_.take(*request)) {
      events_.on_warning("too many file timers; the one of process " +
                         std::to_string(request->pid) + " is not watched");
    }
  }
  if (text_.size() > PIPE_BUF) text_.clear();
  arm();
}

void FileTimerServer::arm() {
  const std::optional<double> next = timers_.next();
  if (!next) return timer_.set(Instant::never());
  // The wall clock may be set in the meantime, so the server polls it.
  const double left =
      std::clamp(*next - wall_seconds(), 0.0, to_seconds(limits::kFileTimerPollInterval));
  timer_.set(boot_now() + seconds(left));
}

void FileTimerServer::on_time() {
  for (const agent::TimerRequest& timer : timers_.expire(wall_seconds())) {
    const std::vector<int> workers = events_.workers();
    const int session = ::getsid(timer.pid);
    if (std::ranges::find(workers, session) == workers.end()) continue;
    events_.on_warning("the timer '" + timer.scope + "' of process " + std::to_string(timer.pid) +
                       " is over; it gets " + signal_name(timer.signal));
    ::kill(timer.pid, timer.signal);
  }
  arm();
}

}  // namespace cpprun
