// PeerListener: a listening port for other agents of the job. One thread accepts, and one thread
// per connection serves it, because serving may block. The destructor ends all waits but does not
// wait for the threads, because a disk may hang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/daemon/snapshots/peer_socket.hpp"
#include "common/result.hpp"

namespace cpprun {

class PeerListener {
 public:
  // Called on a thread of its own; the connection closes when it returns. Must own what it uses,
  // and throws nothing.
  using Serve = std::function<void(PeerSocket& peer)>;

  // Listens on a free port of `address`; "" is every interface. Connections beyond
  // `connections_max` are closed at once.
  static Result<std::unique_ptr<PeerListener>> start(const std::string& address,
                                                     size_t connections_max, Serve serve);
  ~PeerListener();
  PeerListener(const PeerListener&) = delete;

  uint16_t port() const;

 private:
  class Impl;
  explicit PeerListener(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // shared with its threads
};

// Compares in constant time for secrets of equal length.
bool are_same_secret(const std::string& a, const std::string& b);

}  // namespace cpprun
