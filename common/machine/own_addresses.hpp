// Finds out which of an endpoint's addresses belong to this machine. Compares addresses where it
// can: host names mislead (second network cards, short names, names that only this machine knows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

struct ResolvedHost {
  std::vector<std::string> addresses;  // numeric
  bool is_numeric = false;             // `host` was an address or "localhost"; no look-up was made
};

// The addresses that are known without a look-up: for a numeric address and for "localhost".
std::vector<std::string> known_addresses(const std::string& host);

// Looks `host` up unless known_addresses() has it. May block in the resolver.
Result<ResolvedHost> resolve_host(const std::string& host);

// The first of `addresses` that an interface of this machine has (all of 127.0.0.0/8 counts); "" if
// there is none.
std::string first_own_address(const std::vector<std::string>& addresses);

// The addresses of this machine's interfaces, without loopback; at most `most`.
std::vector<std::string> interface_addresses(size_t most);

// Whether `host` is the name of this machine, for endpoints whose name the resolver does not know.
// Compares the domains only if both names have one.
bool is_same_host_name(const std::string& host, const std::string& own);

// The domains that the resolver appends to short names. The first call reads /etc/resolv.conf, so
// it may block; later ones return the same.
const std::vector<std::string>& search_domains();

// Whether a server could listen at this port of an address of this machine.
bool is_port_free(const std::string& address, uint16_t port);

}  // namespace cpprun
