// EtcdClient: asks etcd, by the JSON gateway of any of its members. The one that answered last is
// asked first, the next one when it can't be reached; connections are kept for what follows.
//
// It repeats nothing that a member may have carried out: whoever asks does that, and knows how.
// Thread: the loop's. Answers come from the loop, never from inside ask().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/client/etcd/api.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun::etcd {

class Tls;

// Files in PEM. `ca` "": whom the machine believes; `cert` and `key` "": etcd does not ask.
struct TlsFiles {
  std::string ca;
  std::string cert;
  std::string key;
};
// Errors: no OpenSSL on this machine, files that can't be read or do not fit together.
Result<std::shared_ptr<Tls>> load_tls(const TlsFiles& files);

struct ClientOptions {
  std::vector<Endpoint> endpoints;  // at least one
  std::string user{};               // "": etcd asks for none
  std::string password{};
  std::shared_ptr<Tls> tls{};  // none: plain HTTP
};

class EtcdClient {
 public:
  // The body of an answer. Errors: Network and Timeout (what was asked may have been carried out or
  // not), Refused (it was not; the text has etcd's own words), Protocol.
  using Done = std::function<void(Result<std::string>)>;

  EtcdClient(boost::asio::io_context& loop, ClientOptions options);
  ~EtcdClient();  // nothing is told any more
  EtcdClient(const EtcdClient&) = delete;

  // Answered within `limit`, whatever the members do.
  void ask(const Request& request, Duration limit, Done done);

  // By which the newest connection to etcd left this machine; numeric; "" before the first.
  const std::string& own_address() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with what is under way
};

}  // namespace cpprun::etcd
