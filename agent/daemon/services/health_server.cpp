#include "agent/daemon/services/health_server.hpp"

#include <errno.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/sockets.hpp"
#include "common/result.hpp"

namespace cpprun {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view kAlive =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n"
    "Connection: close\r\n\r\nok\n";

}  // namespace

// One connection: reads a request, answers, closes. Its handlers own it.
class HealthServer::Probe : public std::enable_shared_from_this<HealthServer::Probe> {
 public:
  Probe(tcp::socket socket, std::shared_ptr<size_t> count)
      : socket_(std::move(socket)), deadline_(socket_.get_executor()), count_(std::move(count)) {
    ++*count_;
  }
  ~Probe() { --*count_; }
  Probe(const Probe&) = delete;

  void begin() {
    deadline_.expires_after(limits::kHealthRequestTimeout);
    deadline_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->end();
    });
    const auto into = asio::dynamic_buffer(request_, limits::kHealthRequestBytes);
    asio::async_read_until(socket_, into, "\r\n\r\n",
                           [self = shared_from_this()](error_code error, size_t) {
                             error ? self->end() : self->answer();
                           });
  }

 private:
  void answer() {
    asio::async_write(socket_, asio::buffer(kAlive),
                      [self = shared_from_this()](error_code, size_t) { self->end(); });
  }
  void end() {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
    deadline_.cancel();
  }

  tcp::socket socket_;
  asio::steady_timer deadline_;
  std::shared_ptr<size_t> count_;
  std::string request_;
};

void HealthServer::try_open(uint16_t port) {
  UniqueFd socket = bind_all(port);
  if (!socket.is_open() || ::listen(socket.get(), static_cast<int>(limits::kHealthProbes)) < 0) {
    const int why = errno;
    const std::string what = "health probes are not answered: port " + std::to_string(port) +
                             " (TORCHELASTIC_HEALTH_CHECK_PORT) cannot be had";
    return log::warning(system_error(what, why).text);
  }
  acceptor_.assign(tcp::v6(), socket.release());
  accept();
}

// Closes connections above the limit: schedulers repeat their probes.
void HealthServer::accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    // Without free descriptors or memory the connection stays in the queue, and an immediate
    // accept would fail again in a busy loop.
    if (error) return retry_.set(boot_now() + limits::kHealthRetry);
    if (*probes_ < limits::kHealthProbes) {
      std::make_shared<Probe>(std::move(socket), probes_)->begin();
    }
    accept();
  });
}

}  // namespace cpprun
