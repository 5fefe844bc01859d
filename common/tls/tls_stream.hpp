// TlsStream: one end of a TLS connection as a state machine: encrypted bytes in and out, plain
// bytes out and in. OpenSSL works on memory buffers; the owner moves the bytes over its socket. No
// I/O and no clock: the owner bounds the time of the handshake. One thread at a time.
//
//   start: shake_hands(), send the output
//   bytes of the peer: feed(), then shake_hands() until it is done, then read() until 0, send the
//   output
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/result.hpp"

struct ssl_st;
struct bio_st;

namespace cpprun {

struct OpenSsl;

// What a finished handshake must have, beside what the context demands.
enum class TlsDemand { Nothing, PreSharedKey };

class TlsStream {
 public:
  enum class Side { Client, Server };
  enum class State {
    Handshake,
    Ready,
    Ended,   // the peer has announced that it sends nothing more
    Failed,  // why() has the reason; the output may hold an alert for the peer
  };

  // Owns `session`. `keeper` lives as long as this object.
  TlsStream(const OpenSsl& api, ssl_st* session, Side side, TlsDemand demand,
            std::shared_ptr<const void> keeper);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;

  // Encrypted bytes of the peer. Read them all before more are fed: they lie in memory.
  void feed(std::span<const uint8_t> bytes);
  // Goes on with the handshake. Returns the state.
  State shake_hands();
  // Requires: not in the handshake. Decrypted bytes; 0: more input is needed, or see state().
  size_t read(std::span<uint8_t> room);
  // Requires: not in the handshake. False: see state().
  bool write(std::span<const uint8_t> bytes);
  // Announces to the peer that nothing follows.
  void end_output();

  // Encrypted bytes for the peer.
  size_t output_size() const;
  // Takes up to the size of `room`; returns how many.
  size_t take_output(std::span<uint8_t> room);
  std::string take_output();

  State state() const { return state_; }
  // Requires: Failed. The reason, for people.
  const std::string& why() const { return why_; }

 private:
  void fail(int result);
  void fail(std::string why);
  std::string reason() const;

  const OpenSsl& api_;
  ssl_st* session_;
  const Side side_;
  const TlsDemand demand_;
  const std::shared_ptr<const void> keeper_;
  bio_st* in_;
  bio_st* out_;
  State state_ = State::Handshake;
  size_t fed_ = 0;  // in the handshake
  std::string why_;
};

}  // namespace cpprun
