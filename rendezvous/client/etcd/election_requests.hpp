// Translates the election's requests into etcd's, and etcd's replies into the election's. Pure.
#pragma once

#include <string>

#include "common/result.hpp"
#include "rendezvous/client/etcd/api.hpp"
#include "rendezvous/coordinator/election.hpp"

namespace cpprun::etcd {

// `prefix`: of all keys.
Request request_of(const election::Request& request, const std::string& prefix);

// `reply`: the body of etcd's reply, or the error.
election::Response answer_of(const election::Request& request, const std::string& prefix,
                             const Result<std::string>& reply);

}  // namespace cpprun::etcd
