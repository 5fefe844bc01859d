// What is asked of etcd v3 and what it answers, as plain data, and as the JSON of its gateway
// (/v3/...). Only what the election needs: transactions, leases, users' tokens.
//
// Pure. In the gateway's JSON keys and values are base64, 64-bit numbers are texts, and what is
// zero is left out. Source: etcd's api/etcdserverpb/rpc.proto and its page on the gRPC gateway.
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
  int64_t lease = 0;  // 0: none, it stays
};

// Holds if the key was created, or written last, in this revision; 0: if there is no such key.
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

// All or nothing: `then` if every comparison holds, else `otherwise`.
struct Txn {
  std::vector<Compare> compare;
  std::vector<Operation> then;
  std::vector<Operation> otherwise;
};
struct LeaseGrant {
  Duration ttl{};  // whole seconds; etcd makes short ones longer
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

// What came of a transaction. `found`: by each Get that was carried out, in order.
struct TxnAnswer {
  bool held = false;  // the comparisons
  int64_t revision = 0;
  std::vector<KeyValue> found;

  const KeyValue* find(std::string_view key) const;  // null: it was not found
};
struct LeaseAnswer {
  int64_t lease = 0;
  Duration ttl{};  // zero: there is no such lease (any more)
};

// The path under which the gateway takes it, and its body.
std::string path_of(const Request& request);
std::string body_of(const Request& request);

// Bytes from outside: nonsense is an Error of kind Protocol.
Result<TxnAnswer> parse_txn(std::string_view body);
Result<LeaseAnswer> parse_lease(std::string_view body);  // of a grant, or a keep-alive
Result<std::string> parse_token(std::string_view body);
// What etcd says of a request that it did not take: for people, one line, short. "" if it says
// nothing that can be read.
std::string refusal_in(std::string_view body);

}  // namespace cpprun::etcd
