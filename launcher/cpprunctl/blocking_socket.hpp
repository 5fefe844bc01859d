// BlockingSocket: one socket, and the time by which everything on it must be over. Blocking, for
// tools.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun::ctl {

class BlockingSocket {
 public:
  // Owns `fd`, a non-blocking socket; a negative one fails at the first use.
  BlockingSocket(int fd, Duration limit)
      : fd_(fd), until_(std::chrono::steady_clock::now() + limit) {}
  BlockingSocket(const BlockingSocket&) = delete;
  ~BlockingSocket();
  int fd() const { return fd_; }
  // Another limit, from now on.
  void extend(Duration limit) { until_ = std::chrono::steady_clock::now() + limit; }

  Status connect(const sockaddr* address, socklen_t size);
  Status send(std::string_view bytes);
  // Until `bytes` are there or the other side ends; at most that many.
  Result<std::string> receive(size_t bytes);

 private:
  Status wait(short events) const;

  int fd_;
  std::chrono::steady_clock::time_point until_;
};

// To the first address of the endpoint that takes a connection. Errors name the endpoint.
Result<std::unique_ptr<BlockingSocket>> dial(const Endpoint& endpoint, Duration limit);

}  // namespace cpprun::ctl
