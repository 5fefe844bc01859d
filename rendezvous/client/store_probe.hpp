// StoreProbe: checks whether the listener at an endpoint speaks torch's TCPStore protocol, for a
// helpful log line. One connection, one PING. Thread: the loop's. Lives until the callback or
// cancel().
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

  // Calls back once, from the loop, at most a second after the connect.
  static std::shared_ptr<StoreProbe> start(boost::asio::io_context& loop, const Endpoint& endpoint,
                                           Callback callback);
  void cancel();  // no callback follows

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
