// `cpprunctl serve`: the rendezvous server as a process of its own.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun {

struct ServeOptions {
  std::string listen;           // HOST:PORT
  size_t store_value_limit_mb;  // size limit of one value in the store
};

// Serves until SIGTERM or SIGINT.
Status serve(const ServeOptions& options);

}  // namespace cpprun
