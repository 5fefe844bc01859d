// Which protocol a new connection to the rendezvous port speaks, told by its first bytes. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace cpprun {

enum class Protocol : uint8_t {
  NeedMore,     // ask again with more bytes; five are always enough
  ModernStore,  // torch 2.2 and later: VALIDATE with its magic number
  LegacyStore,  // torch 2.0 and 2.1: a command at once
  Control,      // cpprun's own: "CPRN"
  Http,         // a method's letters
  Unknown,      // none of these: close
};

// Requires: at least one byte.
Protocol sniff(std::span<const uint8_t> bytes);

}  // namespace cpprun
