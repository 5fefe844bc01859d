// Attempt: one try to connect to an endpoint. A name is resolved (numeric addresses need no
// look-up), all its addresses are tried at once, the first that answers wins.
//
// Thread: the loop's. Lives until its outcome was told or it was cancelled.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/endpoint.hpp"

namespace cpprun {

// As people write it: an IPv4 address in IPv6 clothes is an IPv4 address.
std::string unmapped(const boost::asio::ip::address& address);

class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  struct Outcome {
    std::unique_ptr<boost::asio::ip::tcp::socket> socket;  // null: `why` names each address tried
    std::string why;
    std::vector<Endpoint> refused{};  // numeric: where the kernel said that nobody listens
  };
  using Callback = std::function<void(Outcome)>;

  // The callback comes once, from the loop, never from inside start().
  static std::shared_ptr<Attempt> start(boost::asio::io_context& loop, const Endpoint& endpoint,
                                        Callback callback);
  void cancel();  // no callback any more

  Attempt(boost::asio::io_context& loop, Callback callback);  // use start()

 private:
  using Socket = boost::asio::ip::tcp::socket;

  void resolve(const Endpoint& endpoint);
  void try_all(std::vector<boost::asio::ip::tcp::endpoint> addresses);
  void on_connected(size_t index, const boost::asio::ip::tcp::endpoint& at,
                    const boost::system::error_code& error);
  void tell(Outcome outcome);

  boost::asio::io_context& loop_;
  Callback callback_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer limit_;
  std::vector<std::unique_ptr<Socket>> sockets_;
  size_t open_ = 0;  // tries that have not ended
  std::string why_;
  std::vector<Endpoint> refused_;
};

}  // namespace cpprun
