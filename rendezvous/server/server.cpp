#include "rendezvous/server/server.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "rendezvous/server/server_impl.hpp"

namespace cpprun {

Server::Server(boost::asio::io_context& loop, ServerOptions options, ServerHooks hooks)
    : impl_(std::make_shared<Impl>(loop, options, std::move(hooks))) {}

Server::~Server() {
  stop();
}

Result<uint16_t> Server::listen(const Endpoint& endpoint) {
  return impl_->listen(endpoint, nullptr);
}

Result<uint16_t> Server::open_store_listener(const std::string& address, uint16_t port,
                                             std::shared_ptr<Store> store) {
  CPPRUN_CHECK(store != nullptr);
  return impl_->listen({address, port}, std::move(store));
}

void Server::close_store_listener(uint16_t port) {
  impl_->close_store_listener(port);
}
void Server::stop() {
  impl_->stop();
}
size_t Server::connections() const {
  return impl_->connections();
}

}  // namespace cpprun
