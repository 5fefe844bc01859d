// Detects the protocol of a new connection to the rendezvous port from its first bytes. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace cpprun {

enum class Protocol : uint8_t {
  NeedMore,     // call again with more bytes; five always suffice
  ModernStore,  // torch 2.2 and later: VALIDATE with its magic number
  LegacyStore,  // torch 2.0 and 2.1: a command without VALIDATE
  Control,      // cpprun's own: "CPRN"
  Tls,          // a handshake record of TLS; the control protocol follows inside
  Http,         // the name of a method
  Unknown,      // none of these: close the connection
};

// Requires: at least one byte.
Protocol sniff(std::span<const uint8_t> bytes);

}  // namespace cpprun
