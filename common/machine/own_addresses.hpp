// Which of an endpoint's addresses belong to this machine. By address wherever there is one: host
// names lie (facts of the field: second network cards, short names, local-only names).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

struct ResolvedHost {
  std::vector<std::string> addresses;  // numeric
  bool is_numeric = false;             // was given as an address; nothing was looked up
};

// Those that are known without a look-up: of an address, and of "localhost"; else none.
std::vector<std::string> known_addresses(const std::string& host);

// Looks `host` up unless it is numeric or "localhost".
Result<ResolvedHost> resolve_host(const std::string& host);

// The first of `addresses` that an interface of this machine carries (all of 127.0.0.0/8 is ours);
// "" if none.
std::string first_own_address(const std::vector<std::string>& addresses);

// For an endpoint that has no address, since its name is not known (yet): whether it is the name of
// this machine. Domains count if both names have one.
bool is_same_host_name(const std::string& host, const std::string& own);

// Nobody listens at this port of an own address. Says at once what a server's attempt to listen
// would, without looking for whoever has the port.
bool is_port_free(const std::string& address, uint16_t port);

}  // namespace cpprun
