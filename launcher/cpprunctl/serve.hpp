// `cpprunctl serve`: the rendezvous server as a process of its own.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

struct ServeOptions {
  std::string listen;                        // HOST:PORT
  size_t store_value_limit_mb;               // size limit of one value in the store
  std::vector<std::string> allowed_hosts{};  // further names by which HTTP clients may ask
};

// Serves until SIGTERM or SIGINT.
Status serve(const ServeOptions& options);

}  // namespace cpprun
