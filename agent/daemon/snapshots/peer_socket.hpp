// PeerSocket: a connection to another agent, for threads that may wait. Every wait has a limit and
// ends when the Stopper says so.
//
// Not for the agent's loop. One thread at a time; the Stopper is for any.
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

// Ends what waits. For good.
class CancelToken {
 public:
  CancelToken();
  void stop();
  bool is_stopped() const { return wait(Duration{}); }
  // False: not within this time.
  bool wait(Duration limit) const;
  int descriptor() const { return event_.get(); }

 private:
  UniqueFd event_;
};

class PeerSocket {
 public:
  PeerSocket(UniqueFd socket, std::shared_ptr<const CancelToken> cancel_token);
  // All addresses of the host, one after the other.
  static Result<PeerSocket> connect(const std::string& host, uint16_t port, Duration limit,
                                    std::shared_ptr<const CancelToken> cancel_token);

  // Limits are for each time that nothing moves.
  Status send(std::string_view bytes, Duration limit);
  Status send_file(int file, uint64_t bytes, Duration limit);
  // At least one byte. Error: also when the peer has ended the connection.
  Result<size_t> receive(std::span<std::byte> into, Duration limit);
  // Up to '\n', which is left out. Here the limit is for the whole line.
  Result<std::string> receive_line(Duration limit);

 private:
  Status wait_for(short events, Duration limit) const;

  UniqueFd socket_;
  std::shared_ptr<const CancelToken>
      cancel_token_;   // shared: who stops may go before who is stopped
  std::string ahead_;  // received behind a line
};

}  // namespace cpprun
