#include "agent/daemon/events/progress_console.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <variant>

#include "agent/process/streams/terminal.hpp"
#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

// "0:07", "10:00".
std::string minutes(Duration duration) {
  const auto seconds = static_cast<int64_t>(to_seconds(duration));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%lld:%02lld", static_cast<long long>(seconds / 60),
                static_cast<long long>(seconds % 60));
  return text.data();
}

}  // namespace

ProgressConsole::ProgressConsole(boost::asio::io_context& loop, const AgentConfig& config,
                                 std::string host_name)
    : config_(config),
      host_name_(std::move(host_name)),
      is_live_(is_live_terminal(STDERR_FILENO) && log::shows_status()),
      timer_(loop, [this] { show(); }),
      stop_timer_(loop, [this] {
        log::status("the workers have not ended yet; cpprun kills them " +
                    text::seconds(config_.stop_grace) +
                    " after the signal, or at once if you press Ctrl-C again");
      }) {}

ProgressConsole::~ProgressConsole() { stop(); }

void ProgressConsole::start(const Endpoint& coordinator, const std::string& log_folder) {
  if (!is_live_) return;
  coordinator_ = coordinator;
  log::status(start_text(coordinator, log_folder));
  if (config_.rendezvous.max_nodes > 1) wait("waiting for the coordinator");
}

std::string ProgressConsole::start_text(const Endpoint& coordinator,
                                        const std::string& log_folder) const {
  const RendezvousConfig& rendezvous = config_.rendezvous;
  std::string text = "job " + rendezvous.run_id;
  if (rendezvous.max_nodes > 1) {
    text += ", " + std::to_string(rendezvous.min_nodes);
    if (rendezvous.max_nodes != rendezvous.min_nodes) {
      text += " to " + std::to_string(rendezvous.max_nodes);
    }
    text += " nodes";
  }
  text += ", " + text::count(static_cast<size_t>(config_.workers.nproc), "worker") +
          (rendezvous.max_nodes > 1 ? " on this node" : "");
  if (!log_folder.empty()) text += ", logs " + log_folder;
  if (coordinator.port != 0) text += ", dashboard http://" + to_string(coordinator) + "/";
  return text;
}

// For jobs whose nodes all use the same command.
std::string ProgressConsole::command_text() const {
  const RendezvousConfig& rendezvous = config_.rendezvous;
  if (rendezvous.backend != Backend::Cpprun || coordinator_.port == 0) return "";
  const std::string host = is_loopback_host(coordinator_.host) ? host_name_ : coordinator_.host;
  const std::string nodes = std::to_string(rendezvous.min_nodes);
  const bool is_range = rendezvous.min_nodes != rendezvous.max_nodes;
  return "on the other nodes: cpprun --nnodes=" + nodes +
         (is_range ? ":" + std::to_string(rendezvous.max_nodes) : "") +
         " --rdzv-backend=c10d --rdzv-endpoint=" + to_string(Endpoint{host, coordinator_.port}) +
         (rendezvous.has_default_run_id ? "" : " --rdzv-id=" + rendezvous.run_id) + " ...";
}

void ProgressConsole::on_message(const control::CoordinatorMessage& message) {
  if (!is_live_) return;
  if (const auto* waiting = std::get_if<control::Wait>(&message)) {
    if (waiting->delay > Duration{}) has_shown_command_ = true;  // no node is missing
    return wait("waiting: " + text::one_line(waiting->why, limits::kErrorTextBytes));
  }
  const bool ends_wait = std::holds_alternative<control::RankAssignment>(message) ||
                         std::holds_alternative<control::JobResult>(message) ||
                         std::holds_alternative<control::ShutdownRequest>(message) ||
                         std::holds_alternative<control::Refused>(message);
  if (ends_wait) stop();
}

bool ProgressConsole::has_shown(const agent::LogEvent& event) const {
  return !since_.is_never() && event.text.starts_with("waiting: ");
}

void ProgressConsole::wait(const std::string& what) {
  what_ = what;
  if (since_.is_never()) {
    since_ = boot_now();
    timer_.set(since_ + limits::kWaitShownAfter);
  } else if (boot_now() >= since_ + limits::kWaitShownAfter) {
    show();
  }
}

void ProgressConsole::show() {
  if (!std::exchange(has_shown_command_, true)) {
    const std::string command = command_text();
    if (!command.empty()) log::command(command);
  }
  const Instant now = boot_now();
  const std::string clock =
      "   " + minutes(now - since_) + " of " + minutes(config_.rendezvous.conf.join_timeout);
  std::string line = "cpprun: " + what_;
  const auto columns = static_cast<size_t>(std::max(window_of(STDERR_FILENO).columns, 0));
  if (columns > clock.size() + 1) line = text::cut(line, columns - 1 - clock.size());
  log::set_live_line(line + clock);
  timer_.set(now + limits::kWaitShownInterval);
}

void ProgressConsole::on_signal() {
  if (is_live_ && !std::exchange(has_signal_, true))
    stop_timer_.set(boot_now() + limits::kWaitShownAfter);
}

void ProgressConsole::on_end() {
  stop();
  stop_timer_.set(Instant::never());
}

void ProgressConsole::stop() {
  since_ = Instant::never();
  timer_.set(Instant::never());
  if (is_live_) log::set_live_line("");
}

}  // namespace cpprun
