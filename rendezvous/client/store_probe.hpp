// StoreProbe: asks whoever listens at an endpoint whether it speaks torch's TCPStore protocol, so
// that people hear what their agent has met. One connection, one PING.
//
// Thread: the loop's. Lives until its answer was told or it was cancelled.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/endpoint.hpp"
#include "rendezvous/client/connector.hpp"

namespace cpprun {

class StoreProbe : public std::enable_shared_from_this<StoreProbe> {
 public:
  using Callback = std::function<void(bool is_store)>;

  // The callback comes once, from the loop, after a second at most once connected.
  static std::shared_ptr<StoreProbe> start(boost::asio::io_context& loop, const Endpoint& endpoint,
                                           Callback callback);
  void cancel();  // no callback any more

  StoreProbe(boost::asio::io_context& loop, Callback callback);  // use start()

 private:
  void send_probe();
  void complete(bool is_store);

  Callback callback_;
  boost::asio::steady_timer limit_;
  std::shared_ptr<Connector> connector_;
  std::unique_ptr<boost::asio::ip::tcp::socket> socket_;
  std::string request_;
  std::array<char, 4> answer_{};
};

}  // namespace cpprun
