// Connector: one attempt to connect to an endpoint. It resolves a name (numeric addresses and
// localhost need no look-up) and tries all addresses at once; the first that connects wins. Thread:
// the loop's. Its owner keeps it until the callback or cancel().
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/machine/unique_fd.hpp"
#include "rendezvous/client/name_lookup.hpp"

namespace cpprun {

// Text of an address; a mapped IPv4 address is written as IPv4.
std::string unmapped(const boost::asio::ip::address& address);

class Connector : public std::enable_shared_from_this<Connector> {
 public:
  struct Outcome {
    std::unique_ptr<boost::asio::ip::tcp::socket> socket;  // null: `why` lists the addresses tried
    std::string why;
    std::vector<Endpoint> refused{};  // numeric; no process listens there
    std::string local_address{};      // numeric, of the connection
    Endpoint peer{};                  // numeric
  };
  using Callback = std::function<void(Outcome)>;
  // Called before any connect with the endpoint's numeric addresses; none if its name is unknown.
  // May return another numeric address to connect to. Also called from inside start().
  using Found = std::function<std::optional<Endpoint>(const std::vector<std::string>& addresses)>;
  // Called before the connect to a single address: a connection to a server in this process, if one
  // listens there. Not open: connect by TCP. Also called from inside start().
  using InProcess = std::function<UniqueFd(const Endpoint& at)>;

  // The callback comes once, from the loop, never from inside start(). `last_known`: a numeric
  // address to try if the name can't be resolved.
  static std::shared_ptr<Connector> start(boost::asio::io_context& loop, const Endpoint& endpoint,
                                          Callback callback, Found found = nullptr,
                                          InProcess in_process = nullptr,
                                          std::optional<Endpoint> last_known = {});
  void cancel();  // no callback follows

  Connector(boost::asio::io_context& loop, Callback callback, Found found,
            InProcess in_process);  // use start()

 private:
  using Socket = boost::asio::ip::tcp::socket;

  void look_up(const Endpoint& endpoint);
  void connect_to(std::vector<boost::asio::ip::tcp::endpoint> addresses, const std::string& why);
  bool try_in_process(const boost::asio::ip::tcp::endpoint& at);
  void try_all(std::vector<boost::asio::ip::tcp::endpoint> addresses);
  void on_connected(size_t index, const boost::asio::ip::tcp::endpoint& at,
                    const boost::system::error_code& error);
  void complete(Outcome outcome);

  boost::asio::io_context& loop_;
  Callback callback_;
  Found found_;
  InProcess in_process_;
  std::optional<Endpoint> last_known_;
  std::shared_ptr<NameLookup> lookup_;
  boost::asio::steady_timer limit_;
  std::vector<std::unique_ptr<Socket>> sockets_;
  size_t open_ = 0;  // pending attempts
  std::string why_;
  std::vector<Endpoint> refused_;
};

}  // namespace cpprun
