// What one connection of the rendezvous server is to those who speak a protocol over it: bytes in,
// bytes out, its end.
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
  Fin,    // the peer closed politely, or its kernel did it for a dead process
  Reset,  // the peer's kernel refused our bytes, or the network says that it is gone
  ByUs,   // close(), reset(), a limit, or the server's stop
};

// The server's end of a TCP connection. Lives until its session was told on_closed(); any call
// after close() or reset() does nothing. Calls may come at any time on the loop's thread, also from
// inside of the session's own functions.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual SessionId id() const = 0;
  virtual bool is_open() const = 0;
  // True if so much waits for the peer that a session should carry out nothing more for it now, and
  // leave the rest of its bytes unused: it is called again when the peer has read, or ended if it
  // does not.
  virtual bool is_above_high_watermark() = 0;
  // Queues; what a wake-up of the loop queued goes out in one write at its end. A peer that does
  // not read is reset when more than ServerOptions::outbox_bytes wait for it.
  virtual void send(std::string_view bytes) = 0;
  // The same without a copy.
  virtual void send_shared(const SharedBytes& bytes) = 0;
  // Bytes that are queued and that the kernel has not taken yet.
  virtual size_t unsent() const = 0;
  // FIN once everything queued has gone out.
  virtual void close() = 0;
  // RST at once; what is queued is lost.
  virtual void reset() = 0;
  // Numeric, without port; an IPv4 peer of a dual-stack socket is written as IPv4.
  virtual std::string peer_address() const = 0;
  virtual std::string local_address() const = 0;
  // The memory that holds the bytes given to on_bytes(), while that call runs: keep a reference and
  // they stay. Null when they are few. Its size in bytes goes to `size`.
  virtual std::shared_ptr<const void> input_owner(size_t& size) const = 0;
};

// One protocol on one connection.
class Session {
 public:
  virtual ~Session() = default;
  // Everything received and not used up yet. Returns how many bytes it used up; the rest comes
  // again, with more.
  virtual size_t on_bytes(std::span<const uint8_t> bytes) = 0;
  // After on_bytes(): it need not be called again before this many unused bytes are there.
  virtual size_t wants() const { return 1; }
  // Its peer has said what it is here for. Until then it has the time of those who say nothing.
  virtual bool is_settled() const { return true; }
  // The last call, exactly once, never from inside of another call of this session.
  virtual void on_closed(CloseKind kind) = 0;
};

}  // namespace cpprun
