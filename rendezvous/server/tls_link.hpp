// TlsLink: what encrypts a connection of the server: a TlsStream, and the encrypted bytes that wait
// for the socket. Internal to rendezvous/server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/tls/tls_stream.hpp"
#include "rendezvous/server/buffers.hpp"

namespace cpprun {

class TlsLink {
 public:
  enum class Sent { All, Blocked, Broken };

  // `place`: held until the handshake is over; the owner counts them.
  TlsLink(std::unique_ptr<TlsStream> stream, std::shared_ptr<const void> place)
      : stream_(std::move(stream)), place_(std::move(place)) {}

  TlsStream::State state() const { return stream_->state(); }
  const std::string& why() const { return stream_->why(); }

  // Takes encrypted bytes of the peer; read() returns what they hold.
  void feed(std::span<const uint8_t> bytes);
  size_t read(std::span<uint8_t> room);
  // Encrypts `out` and sends it, as far as the non-blocking socket takes it.
  Sent flush(int fd, Outbox& out);
  // Nothing follows what flush() has taken. Call flush() afterwards.
  void end_output();
  bool has_unsent() const { return done_ < waiting_.size() || stream_->output_size() > 0; }

 private:
  void encrypt_some(Outbox& out);

  std::unique_ptr<TlsStream> stream_;
  std::shared_ptr<const void> place_;
  std::string waiting_;  // encrypted
  size_t done_ = 0;      // sent bytes of waiting_
  bool has_ended_output_ = false;
};

}  // namespace cpprun
