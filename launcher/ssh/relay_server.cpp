#include "launcher/ssh/relay_server.hpp"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "agent/process/streams/stream_fds.hpp"
#include "common/exit_code.hpp"
#include "common/limits/ssh.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/end_signals.hpp"
#include "common/version.hpp"
#include "launcher/ssh/plan/control_lines.hpp"

namespace cpprun::ssh {

using Kind = RelayFrame::Kind;

struct RelayServer::Child final : ProcessSink {
  Child(RelayServer& owner, const RelayFrame& start)
      : server(owner), number(start.process), is_agent(start.kind == Kind::StartAgent) {}

  void on_out(std::string_view bytes, Instant) override {
    server.send(Kind::Output, number, bytes);
  }
  void on_err(std::string_view bytes, Instant) override {
    server.send(Kind::Errors, number, bytes);
  }
  void on_refused(std::string_view why, Instant) override {
    server.send(Kind::Refused, number, why);
  }
  void on_end(const ProcessEnd& end, Instant) override {
    server.send(Kind::End, number, end_payload(end));
  }

  RelayServer& server;
  const uint32_t number;
  const bool is_agent;
  std::unique_ptr<ChildProcess> process;
};

RelayServer::RelayServer(UniqueFd signals, std::vector<std::string> environment)
    : signals_(std::move(signals)), environment_(std::move(environment)), out_(STDOUT_FILENO) {}

RelayServer::~RelayServer() = default;

void RelayServer::run() {
  out_.add(hello_line(version()));
  while (!is_finishing_ || !children_.empty()) step();
}

// While the server finishes, possibly no client reads, and the output must not grow.
void RelayServer::send(Kind kind, uint32_t process, std::string_view payload) {
  if (is_finishing_ && out_.is_full()) return;
  out_.add(relay_frame(kind, process, payload));
}

void RelayServer::step() {
  std::vector<pollfd> polled = {{is_finishing_ ? -1 : STDIN_FILENO, POLLIN, 0},
                                {is_finishing_ ? -1 : signals_.get(), POLLIN, 0},
                                {out_.is_waiting() ? out_.poll_fd() : -1, POLLOUT, 0}};
  const size_t own = polled.size();
  const bool reads = is_finishing_ || !out_.is_full();
  Instant until = Instant::never();
  for (const auto& [number, child] : children_) {
    child->process->add_polled(polled, reads, reads);
    until = std::min(until, child->process->leave_at());
  }
  poll_until(polled, until);
  const Instant now = boot_now();
  size_t at = own;
  for (const auto& [number, child] : children_) {
    child->process->on_polled(&polled[at], now);
    at += ChildProcess::kPolled;
  }
  std::erase_if(children_, [](const auto& each) { return each.second->process->has_ended(); });
  if (polled[2].revents != 0) out_.flush();
  if (polled[1].revents != 0) finish();
  if (polled[0].revents != 0) read_input();
}

void RelayServer::read_input() {
  std::array<char, 64 * 1024> buffer;
  const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) return finish();
  frames_.feed({buffer.data(), static_cast<size_t>(got)});
  ::explicit_bzero(buffer.data(), static_cast<size_t>(got));  // it may hold the secret
  while (!is_finishing_) {
    const Result<std::optional<RelayFrame>> frame = frames_.next();
    if (!frame) return finish();
    if (!*frame) return;
    on_frame(**frame);
  }
}

void RelayServer::on_frame(const RelayFrame& frame) {
  if (frame.kind == Kind::StartAgent || frame.kind == Kind::StartSsh) return start(frame);
  const auto found = children_.find(frame.process);
  if (found == children_.end()) return;  // it has ended, which the launcher does not know yet
  ChildProcess& process = *found->second->process;
  switch (frame.kind) {
    case Kind::Input:
      process.send(frame.payload);
      // An ssh that takes nothing any more is given up.
      if (process.unsent() > limits::kRelayUnsentBytes) process.kill();
      return;
    case Kind::CloseInput: return process.close_input();
    case Kind::Kill: return process.kill();
    default: return;
  }
}

void RelayServer::start(const RelayFrame& frame) {
  const std::vector<std::string> words = words_of_start(frame.payload);
  if (words.empty() || children_.contains(frame.process)) return finish();
  auto child = std::make_unique<Child>(*this, frame);
  Result<std::unique_ptr<ChildProcess>> process =
      ChildProcess::start(context_, words, environment_, *child);
  if (!process) return child->on_refused(process.error().text, boot_now());
  child->process = std::move(*process);
  children_[frame.process] = std::move(child);
}

void RelayServer::finish() {
  is_finishing_ = true;
  for (const auto& [number, child] : children_) {
    child->is_agent ? child->process->close_input() : child->process->kill();
  }
}

int run_relay(std::vector<std::string> environment) {
  fill_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  Result<UniqueFd> signals = open_end_signals();
  if (!signals) {
    MergedOutput(STDERR_FILENO).add("error: " + signals.error().text + "\n");
    return exit_code(signals.error());
  }
  RelayServer(std::move(*signals), std::move(environment)).run();
  return kSuccess;
}

}  // namespace cpprun::ssh
