// PeerSocket: a blocking connection to another agent. Every wait has a limit and ends when the
// CancelToken is stopped.
//
// Not for the agent's loop. One thread at a time; a CancelToken may be used on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

// Ends all waits that use it, for ever.
class CancelToken {
 public:
  CancelToken();
  void stop();
  bool is_stopped() const { return wait(Duration{}); }
  // Whether it was stopped within `limit`.
  bool wait(Duration limit) const;
  int descriptor() const { return event_.get(); }

 private:
  UniqueFd event_;
};

// Errors are of kind Network if nothing else is said.
class PeerSocket {
 public:
  PeerSocket(UniqueFd socket, std::shared_ptr<const CancelToken> cancel_token);
  // Tries all addresses of the host, one after the other. `limit`: per address.
  static Result<PeerSocket> connect(const std::string& host, uint16_t port, Duration limit,
                                    std::shared_ptr<const CancelToken> cancel_token);

  // `limit`: the longest time without progress.
  Status send(std::string_view bytes, Duration limit);
  Status send_file(int file, uint64_t bytes, Duration limit);
  // Receives at least one byte. Error also if the peer has closed the connection.
  Result<size_t> receive(std::span<std::byte> into, Duration limit);
  // Receives up to '\n' and removes it. `limit`: for the whole line.
  Result<std::string> receive_line(Duration limit);
  // Sends a request and returns the number of bytes that follow its answer. Error (Network): the
  // connection broke, or the peer does not know the secret yet; (Timeout): the peer serves its
  // maximum number of agents; (Refused): it does not have that; (Protocol): no answer.
  Result<uint64_t> ask(std::string_view request, Duration limit);

 private:
  Status wait_for(short events, Duration limit) const;

  UniqueFd socket_;
  // Shared: the object that stops the transfer may be destroyed before this socket.
  std::shared_ptr<const CancelToken> cancel_token_;
  std::string unread_;  // bytes received after a line
};

}  // namespace cpprun
