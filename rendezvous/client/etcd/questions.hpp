// An election's questions as requests of etcd, and etcd's answers as the election's. Pure.
#pragma once

#include <string>

#include "common/result.hpp"
#include "rendezvous/client/etcd/api.hpp"
#include "rendezvous/coordinator/election.hpp"

namespace cpprun::etcd {

// `prefix` goes before all keys.
Request request_of(const election::Request& request, const std::string& prefix);

// `reply`: the body of an answer, or why there is none.
election::Response answer_of(const election::Request& request, const std::string& prefix,
                             const Result<std::string>& reply);

}  // namespace cpprun::etcd
