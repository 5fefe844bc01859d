#include "rendezvous/server/loop.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <optional>

#include "common/thread/loop_mark.hpp"

namespace cpprun {

namespace asio = boost::asio;

struct ServerLoop::Io {
  // One thread runs the loop and uses its sockets, so descriptors need no locks; post() stays safe.
  asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> guard;
  asio::signal_set signals{context};
};

ServerLoop::ServerLoop() : io_(std::make_unique<Io>()) {}
ServerLoop::~ServerLoop() = default;

asio::io_context& ServerLoop::context() { return io_->context; }
void ServerLoop::run() {
  const LoopMark mark;
  io_->context.run();
}
void ServerLoop::hold() { io_->guard.emplace(io_->context.get_executor()); }
void ServerLoop::release() { io_->guard.reset(); }
void ServerLoop::stop() { io_->context.stop(); }
void ServerLoop::post(std::function<void()> f) { asio::post(io_->context, std::move(f)); }

void ServerLoop::on_signal(const std::vector<int>& numbers, std::function<void(int)> f) {
  for (int number : numbers) io_->signals.add(number);
  auto once = [f = std::move(f)](const boost::system::error_code& error, int number) {
    if (!error) f(number);
  };
  io_->signals.async_wait(once);
}

}  // namespace cpprun
