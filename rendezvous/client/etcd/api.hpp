// Requests and replies of etcd v3 as plain data, and their JSON at its gateway (/v3/...). Only what
// the election needs: transactions, leases, users' tokens. Pure. In the gateway's JSON, keys and
// values are base64, 64-bit numbers are strings, and zero values are omitted. Source: etcd's
// api/etcdserverpb/rpc.proto and its page on the gRPC gateway.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun::etcd {

struct KeyValue {
  std::string key;
  std::string value;
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
  int64_t lease = 0;  // 0: none, the key is permanent
};

// True if the key was created, or last written, in this revision; 0: if there is no such key.
struct Compare {
  enum class What { Created, Written } what = What::Created;
  std::string key;
  int64_t revision = 0;
};

struct Put {
  std::string key;
  std::string value;
  int64_t lease = 0;
};
struct Get {
  std::string key;
};
using Operation = std::variant<Put, Get>;

// Atomic: `then` if every comparison is true, otherwise `otherwise`.
struct Txn {
  std::vector<Compare> compare;
  std::vector<Operation> then;
  std::vector<Operation> otherwise;
};
struct LeaseGrant {
  Duration ttl{};  // whole seconds; etcd extends short ones
};
struct LeaseKeepAlive {
  int64_t lease = 0;
};
struct LeaseRevoke {
  int64_t lease = 0;
};
struct Authenticate {
  std::string user;
  std::string password;
};
using Request = std::variant<Txn, LeaseGrant, LeaseKeepAlive, LeaseRevoke, Authenticate>;

// Reply to a transaction. `found`: the results of the executed Gets, in order.
struct TxnAnswer {
  bool held = false;  // all comparisons were true
  int64_t revision = 0;
  std::vector<KeyValue> found;

  const KeyValue* find(std::string_view key) const;  // null: not found
};
struct LeaseAnswer {
  int64_t lease = 0;
  Duration ttl{};  // zero: the lease does not exist
};

// Path and body of the gateway's request.
std::string path_of(const Request& request);
std::string body_of(const Request& request);

// Invalid input is an Error of kind Protocol.
Result<TxnAnswer> parse_txn(std::string_view body);
Result<LeaseAnswer> parse_lease(std::string_view body);  // of a grant, or a keep-alive
Result<std::string> parse_token(std::string_view body);
// etcd's error text of a rejected request, as one short line for people; "" if unreadable.
std::string refusal_in(std::string_view body);

}  // namespace cpprun::etcd
