// RpcCall: sends one request to the first member of etcd that can be reached. Private to
// rendezvous/client/etcd.
//   for each member: connect -> (log in, if there is a user and no token) -> send
// It skips a member that cannot be reached in time. Once the request is sent, it reports the
// outcome and retries nothing. It renews an expired token once. A login may outlast the call that
// began it; later calls use its token. Thread: the loop's. Lives until the callback or cancel().
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "rendezvous/client/connector.hpp"
#include "rendezvous/client/etcd/etcd_client.hpp"
#include "rendezvous/client/etcd/http_exchange.hpp"
#include "rendezvous/client/etcd/transport.hpp"
#include "rendezvous/client/tls_handshake.hpp"

namespace cpprun::etcd {

// State shared by the calls of a client.
struct EtcdSession {
  ClientOptions options;
  size_t at = 0;                                 // the member that calls try first
  std::vector<std::shared_ptr<Transport>> idle;  // connections to that member
  std::string token;                             // of options.user
  std::shared_ptr<HttpExchange> login;           // pending login, shared by all calls
  std::string own_address;
  bool is_closed = false;  // its client is gone

  // `member` failed. Moves `at` to the next one unless another call has done so.
  void rotate_endpoint(size_t member);
};

class RpcCall : public std::enable_shared_from_this<RpcCall> {
 public:
  using Done = std::function<void(Result<std::string>)>;

  RpcCall(boost::asio::io_context& loop, std::shared_ptr<EtcdSession> session,
          GatewayRequest request, Duration limit, Done done);
  void start();
  void cancel();

 private:
  void wait_until(std::chrono::steady_clock::time_point end);
  void try_member();
  void on_connected(Connector::Outcome outcome);
  void use(std::shared_ptr<Transport> transport);
  void log_in();
  void on_token(const HttpExchange::Outcome& outcome, std::shared_ptr<Transport> transport);
  void ask();
  void on_answer(HttpExchange::Outcome outcome);
  void on_time();
  void try_next_member(const std::string& why);
  void renew_token();
  void keep(bool is_usable);
  std::string member() const;
  void finish(Result<std::string> result);

  boost::asio::io_context& loop_;
  std::shared_ptr<EtcdSession> session_;
  const GatewayRequest request_;
  const std::chrono::steady_clock::time_point ends_at_;
  Done done_;
  boost::asio::steady_timer timer_;
  size_t member_ = 0;
  size_t tried_ = 0;  // members tried so far
  bool was_asked_ = false;
  bool has_renewed_ = false;
  std::shared_ptr<Connector> connector_;
  std::shared_ptr<TlsHandshake> handshake_;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<HttpExchange> exchange_;
  std::string why_;  // errors of the members so far
};

}  // namespace cpprun::etcd
