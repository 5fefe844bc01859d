#include "agent/daemon/services/store_monitor.hpp"

#include <unistd.h>

#include <array>
#include <string_view>

#include "agent/process/diagnostics/refused_connections.hpp"
#include "common/machine/port_owner.hpp"
#include "common/thread/loop_mark.hpp"

namespace cpprun {
namespace {

constexpr int kAtOnce = 64;  // messages read before the loop does other work

bool has_server(uint16_t port) {
  const Unblocking table("the kernel's own table of sockets");
  return is_served(port);
}

}  // namespace

void StoreMonitor::begin_round(uint16_t port) {
  end_round();
  port_ = port;
  timer_.set(boot_now() + timeout_);
}

void StoreMonitor::end_round() {
  boost::system::error_code ignored;
  timer_.set(Instant::never());
  closed_sockets_.close(ignored);
}

void StoreMonitor::check() {
  if (has_server(port_)) return;
  UniqueFd sockets = watch_closed_sockets(port_);
  if (!sockets.is_open()) return;
  closed_sockets_.assign(sockets.release());
  wait_for_refusal();
}

void StoreMonitor::wait_for_refusal() {
  closed_sockets_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                             [this](boost::system::error_code error) {
                               if (error) return;
                               if (!has_refusal()) return wait_for_refusal();
                               end_round();
                               if (!has_server(port_)) warn_unserved();
                             });
}

bool StoreMonitor::has_refusal() {
  std::array<char, kClosedSocketBytes> message;
  for (int i = 0; i < kAtOnce; ++i) {
    const ssize_t size = ::read(closed_sockets_.native_handle(), message.data(), message.size());
    if (size <= 0) return false;
    if (is_refusal({message.data(), static_cast<size_t>(size)})) return true;
  }
  return false;
}

void StoreMonitor::warn_unserved() {
  const auto waited = std::to_string(static_cast<int>(to_seconds(timeout_)));
  warn_("no process serves MASTER_PORT " + std::to_string(port_) + ", " + waited +
        " s after the start of the workers, and a program tries to connect to it: worker 0 serves "
        "it from init_process_group on; if the workers only connect to it, as torchft's do, add "
        "--worker-store=agent");
}

}  // namespace cpprun
