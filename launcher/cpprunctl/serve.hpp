// `cpprunctl serve`: the rendezvous server as a process of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "launcher/cpprunctl/tls_options.hpp"

namespace cpprun {

struct ServeOptions {
  std::string listen;           // HOST:PORT
  size_t store_value_limit_mb;  // size limit of one value in the store
  // Of all stores and of the connections' buffers. Unset: a part of the usable memory.
  std::optional<size_t> store_memory_mb{};
  TlsOptions tls{};
  std::vector<std::string> allowed_hosts{};  // further names by which HTTP clients may ask
};

// Serves until SIGTERM or SIGINT.
Status serve(const ServeOptions& options);

}  // namespace cpprun
