// StoreLink: a connected socket to a store, with a deadline on every call. Bytes only: what they
// mean is StoreClient's affair. For the worker's own sources; one thread at a time.
//
// The first thing that goes wrong closes the socket and is kept: every later call gives it again.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "rendezvous/client/store/deadline.hpp"
#include "rendezvous/client/store/descriptor.hpp"

namespace cpprun::worker {

class StoreLink {
 public:
  // `peer`: who that is, for errors.
  StoreLink(Descriptor socket, std::string peer);

  // All of it. Refused if the peer has said more than it was asked.
  Status send(std::string_view bytes, Deadline deadline);
  // Exactly as many bytes as `into` has room for.
  Status read(std::span<uint8_t> into, Deadline deadline);
  // The same; memory follows what has really come.
  Result<std::string> read_string(size_t size, Deadline deadline);
  // Whether something to read came before the deadline; nothing is closed if not.
  Result<bool> has_input(Deadline deadline);

  // Of no use any more; `why` is what all later calls say. Gives `why` back.
  Error close(Error why);
  const std::string& peer() const { return peer_; }

 private:
  Status refill(Deadline deadline);
  Status receive(char* into, size_t room, size_t& got, Deadline deadline);
  size_t take(void* into, size_t room);
  Status refusal() const;

  Descriptor socket_;
  std::string peer_;
  std::string trouble_;  // why it is closed
  std::array<char, 4096> held_{};
  size_t first_ = 0;  // of held_: what has come and was not read yet
  size_t end_ = 0;
};

}  // namespace cpprun::worker
