// StoreLink: a connected socket to a store, with a deadline for every call. Bytes only; StoreClient
// interprets them. Internal to the worker SDK; one thread at a time. The first error closes the
// socket, and every later call returns it again.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/endpoint.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "rendezvous/client/store/deadline.hpp"

namespace cpprun::worker {

// One attempt to connect by TCP, at every address of the endpoint's name. Returns a connected
// socket: non-blocking, no delay, close-on-exec. Resolves a name each time, with the resolver's own
// time limit only. The error (Network) names the last address tried and its errno.
Result<UniqueFd> dial(const Endpoint& endpoint, Deadline deadline);

class StoreLink {
 public:
  // `peer`: name of the server, for errors.
  StoreLink(UniqueFd socket, std::string peer);

  // Sends everything. Refused if unread bytes of the peer are left.
  Status send(std::string_view bytes, Deadline deadline);
  // Reads exactly into.size() bytes.
  Status read(std::span<uint8_t> into, Deadline deadline);
  // The same; allocates only as bytes arrive.
  Result<std::string> read_string(size_t size, Deadline deadline);
  // True if input arrived before the deadline. Does not close the link otherwise.
  Result<bool> has_input(Deadline deadline);

  // Closes the socket; all later calls return `why`. Returns `why`.
  Error close(Error why);
  const std::string& peer() const { return peer_; }

 private:
  Status refill(Deadline deadline);
  Status receive(char* into, size_t room, size_t& got, Deadline deadline);
  size_t take(void* into, size_t room);
  Status refusal() const;

  UniqueFd socket_;
  std::string peer_;
  std::string trouble_;  // why the socket is closed
  std::array<char, 4096> held_{};
  size_t first_ = 0;  // unread bytes of held_: [first_, end_)
  size_t end_ = 0;
};

}  // namespace cpprun::worker
