// Transport: bytes to and from one member of etcd over an established connection.
//
// Thread: the loop's. Callbacks come from the loop, never from inside a call; none after close().
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace cpprun::etcd {

class Transport {
 public:
  using Sent = std::function<void(const boost::system::error_code&)>;
  using Got = std::function<void(const boost::system::error_code&, size_t)>;

  virtual ~Transport() = default;
  // Writes all of `bytes`, which must stay valid until the callback.
  virtual void write(std::span<const char> bytes, Sent sent) = 0;
  // Reads up to the size of `room`, which must stay valid until the callback.
  virtual void read(std::span<char> room, Got got) = 0;
  virtual void close() = 0;
  // The peer closed the connection or sent unrequested bytes.
  virtual bool is_stale() = 0;
  // Local address of the connection, numeric.
  virtual std::string own_address() = 0;
  // Text of an error, for people.
  virtual std::string why(const boost::system::error_code& error) const { return error.message(); }
};

// The socket handling common to plain and TLS transports.
class SocketTransport : public Transport {
 public:
  explicit SocketTransport(std::unique_ptr<boost::asio::ip::tcp::socket> socket);

  void close() override;
  bool is_stale() override;
  std::string own_address() override;

 protected:
  boost::asio::ip::tcp::socket& socket() { return *socket_; }
  bool is_closed() const { return is_closed_; }

 private:
  std::unique_ptr<boost::asio::ip::tcp::socket> socket_;
  bool is_closed_ = false;
};

std::shared_ptr<Transport> plain_transport(std::unique_ptr<boost::asio::ip::tcp::socket> socket);

}  // namespace cpprun::etcd
