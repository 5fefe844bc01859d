// Url: an http or https URL, of which a request is made. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/endpoint.hpp"
#include "common/result.hpp"

namespace cpprun {

struct Url {
  bool is_tls = false;
  Endpoint endpoint;   // port 80 or 443 if the URL names none
  std::string host;    // as in the URL, with its port: the Host field of a request
  std::string target;  // path and query, at least "/"
};

// The error does not repeat the URL, which may hold a token. User names in it are refused.
Result<Url> parse_url(std::string_view text);

}  // namespace cpprun
