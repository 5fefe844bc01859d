// TlsHandshake: the client's part of a TLS handshake over a connected socket. Thread: the loop's.
// Lives until the callback or cancel().
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/tls/tls_stream.hpp"

namespace cpprun {

class TlsHandshake : public std::enable_shared_from_this<TlsHandshake> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  struct Outcome {
    std::unique_ptr<Socket> socket;  // null: `why`
    std::unique_ptr<TlsStream> stream;
    std::string why;
  };
  using Callback = std::function<void(Outcome)>;

  // Calls back once, from the loop, within limits::kTlsHandshakeTimeout; never from inside start().
  static std::shared_ptr<TlsHandshake> start(std::unique_ptr<Socket> socket,
                                             std::unique_ptr<TlsStream> stream, Callback callback);
  void cancel();  // closes the socket; no callback follows

  TlsHandshake(std::unique_ptr<Socket> socket, std::unique_ptr<TlsStream> stream,
               Callback callback);  // use start()

 private:
  void step();
  void receive();
  void complete(const std::string& why);

  std::unique_ptr<Socket> socket_;
  std::unique_ptr<TlsStream> stream_;
  Callback callback_;
  boost::asio::steady_timer limit_;
  std::string outgoing_;
  std::array<uint8_t, 4096> incoming_{};
};

}  // namespace cpprun
