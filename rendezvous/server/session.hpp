// The interface between a connection of the rendezvous server and the session that implements a
// protocol on it: bytes in, bytes out, end.
//
// The server owns connection and session and calls both from its loop's thread only. No Asio here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "rendezvous/store/value.hpp"

namespace cpprun {

enum class CloseKind : uint8_t {
  Fin,    // the peer closed, or its kernel did for a dead process
  Reset,  // the peer's kernel rejected our bytes, or the network reported an error
  ByUs,   // close(), reset(), a limit, or the server's stop
};

// The server's end of a TCP connection. Lives until its session's on_closed(); calls after close()
// or reset() have no effect. Calls may come at any time on the loop's thread, also from inside of
// the session's functions.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual SessionId id() const = 0;
  virtual bool is_open() const = 0;
  // True if too many unsent bytes wait for the peer. The session then stops and leaves the rest of
  // its input unused; the server calls it again when the peer has read.
  virtual bool is_above_high_watermark() = 0;
  // Queues bytes; one write at the end of the batch sends them. Resets the connection if
  // ServerOptions::outbox_bytes wait for the peer already, or the server's memory budget is used
  // up.
  virtual void send(std::string_view bytes) = 0;
  // The same without a copy.
  virtual void send_shared(const SharedBytes& bytes) = 0;
  // Queued bytes that the kernel has not taken yet.
  virtual size_t unsent() const = 0;
  // Sends FIN after all queued bytes.
  virtual void close() = 0;
  // Sends RST at once and drops queued bytes.
  virtual void reset() = 0;
  // Numeric, without port; an IPv4 peer of a dual-stack socket is written as IPv4.
  virtual std::string peer_address() const = 0;
  virtual std::string local_address() const = 0;
  // During on_bytes(): the memory block that holds its bytes, which a reference keeps alive; `size`
  // is the block's size. Null for short input.
  virtual std::shared_ptr<const void> input_owner(size_t& size) const = 0;
};

// One protocol on one connection.
class Session {
 public:
  virtual ~Session() = default;
  // `bytes` is everything received and not consumed yet. Returns the number of consumed bytes; the
  // rest is passed again with more.
  virtual size_t on_bytes(std::span<const uint8_t> bytes) = 0;
  // After on_bytes(): it need not be called again with fewer bytes than this.
  virtual size_t wants() const { return 1; }
  // The peer has sent its first real command. Until then the timeout of silent peers applies.
  virtual bool is_settled() const { return true; }
  // An exception that leaves on_bytes() harms this session alone, and the server ends it. False: it
  // harms a state that others share, and the exception leaves the loop.
  virtual bool is_isolated() const { return true; }
  // The incomplete command at the start of `bytes`, for the log; "" if there is none.
  virtual std::string describe(std::span<const uint8_t> bytes) const {
    static_cast<void>(bytes);
    return "";
  }
  // The last call; exactly once, never from inside of another call of this session.
  virtual void on_closed(CloseKind kind) = 0;
};

}  // namespace cpprun
