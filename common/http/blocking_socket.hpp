// BlockingSocket: a socket with one deadline for all its operations. Blocking, for command line
// tools and for threads of the agent that may wait, such as the notice of a failed job.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "common/endpoint.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "common/tls/tls_stream.hpp"

namespace cpprun {

class BlockingSocket {
 public:
  // Takes ownership of `fd`, a non-blocking socket; a negative one fails at the first use.
  BlockingSocket(int fd, Duration limit)
      : fd_(fd), until_(std::chrono::steady_clock::now() + limit) {}
  int fd() const { return fd_.get(); }
  // Sets the deadline to `limit` from now.
  void extend(Duration limit) { until_ = std::chrono::steady_clock::now() + limit; }

  Status connect(const sockaddr* address, socklen_t size);
  // The TLS handshake; all that follows is encrypted.
  Status secure(std::unique_ptr<TlsStream> tls);
  // Whether secure() has failed because the peer ended the connection.
  bool is_ended_in_handshake() const { return is_ended_in_handshake_; }
  Status send(std::string_view bytes);
  // Blocks until `bytes` have arrived or the peer closes; returns at most that many.
  Result<std::string> receive(size_t bytes);

 private:
  Status finish_connect();
  Status wait(short events) const;
  Status send_raw(std::string_view bytes);
  // Empty: the peer has closed.
  Result<std::string> receive_some(size_t most);
  Result<std::string> receive_decrypted(size_t most);

  const UniqueFd fd_;
  std::unique_ptr<TlsStream> tls_;  // null: plain
  bool is_ended_in_handshake_ = false;
  std::chrono::steady_clock::time_point until_;
};

// Connects to the first address of the endpoint that accepts. Errors name the endpoint.
Result<std::unique_ptr<BlockingSocket>> dial(const Endpoint& endpoint, Duration limit);

}  // namespace cpprun
