// The election's requests in the JSON of etcd v3's gateway (/v3/...), and its replies. Pure. In
// that JSON, keys and values are base64, 64-bit numbers are strings, and zero values are omitted.
// Source: etcd's api/etcdserverpb/rpc.proto and its page on the gRPC gateway.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "rendezvous/coordinator/election.hpp"

namespace cpprun::etcd {

// A POST request.
struct GatewayRequest {
  std::string path;
  std::string body;
};

// `prefix`: of all keys.
GatewayRequest request_of(const election::Request& request, const std::string& prefix);
GatewayRequest login_request(const std::string& user, const std::string& password);

// `reply`: the body of etcd's reply to `request`, or the error.
election::Response response_of(const election::Request& request, const std::string& prefix,
                               const Result<std::string>& reply);
// Of a login. Error: Protocol.
Result<std::string> parse_token(std::string_view body);
// etcd's error text of a rejected request, as one short line for people; "" if unreadable.
std::string refusal_in(std::string_view body);

}  // namespace cpprun::etcd
