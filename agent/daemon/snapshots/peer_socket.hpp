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
#include "common/tls/job_tls.hpp"

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

// Errors are of kind Network unless a function names another.
class PeerSocket {
 public:
  PeerSocket(UniqueFd socket, std::shared_ptr<const CancelToken> cancel_token);
  // Tries all addresses of the host, one after the other. `limit`: per address.
  // With `tls` the connection is encrypted.
  static Result<PeerSocket> connect(const std::string& host, uint16_t port, Duration limit,
                                    std::shared_ptr<const CancelToken> cancel_token,
                                    const JobTls* tls = nullptr);

  // The TLS handshake; all that follows is encrypted. `limit`: for the whole handshake.
  Status secure(std::unique_ptr<TlsStream> tls, Duration limit);

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
  Status send_raw(std::string_view bytes, Duration limit);
  Result<size_t> receive_raw(std::span<std::byte> into, Duration limit);
  Status send_encrypted(std::string_view bytes, Duration limit);
  Result<size_t> receive_encrypted(std::span<std::byte> into, Duration limit);
  Status send_file_encrypted(int file, uint64_t bytes, Duration limit);

  UniqueFd socket_;
  std::unique_ptr<TlsStream> tls_;  // null: plain
  // Shared: the object that stops the transfer may be destroyed before this socket.
  std::shared_ptr<const CancelToken> cancel_token_;
  std::string unread_;  // bytes received after a line
};

}  // namespace cpprun
