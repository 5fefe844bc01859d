// Which of an endpoint's addresses belong to this machine. By address only: host names lie (facts
// of the field: second network cards, short names, local-only names).
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

struct ResolvedHost {
  std::vector<std::string> addresses;  // numeric
  bool is_numeric = false;             // was given as an address; nothing was looked up
};

// Looks `host` up unless it is numeric or "localhost".
Result<ResolvedHost> resolve_host(const std::string& host);

// The first of `addresses` that an interface of this machine carries (all of 127.0.0.0/8 is ours);
// "" if none.
std::string first_own_address(const std::vector<std::string>& addresses);

}  // namespace cpprun
