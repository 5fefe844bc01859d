// EtcdClient: sends requests to etcd through the JSON gateway of its members. It asks the member
// that replied last first and the next one if that cannot be reached; it keeps connections open. It
// never repeats a request that a member may have executed; the caller decides about that. Thread:
// the loop's. Callbacks come from the loop, never from inside ask().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/client/etcd/gateway.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {
class TlsContext;
}

namespace cpprun::etcd {

class RpcCall;
struct EtcdSession;

// PEM files. `ca` "": the system's certificates; `cert` and `key` "": no client certificate.
struct TlsFiles {
  std::string ca;
  std::string cert;
  std::string key;
};
// Errors: no OpenSSL on this machine; files that cannot be read or do not match.
Result<std::shared_ptr<const TlsContext>> load_tls(const TlsFiles& files);

struct ClientOptions {
  std::vector<Endpoint> endpoints;  // at least one
  std::string user{};               // "": no authentication
  std::string password{};
  std::shared_ptr<const TlsContext> tls{};  // null: plain HTTP
};

class EtcdClient {
 public:
  // The body of the reply. Errors: Network and Timeout (etcd may or may not have executed the
  // request), Refused (it did not; the text is etcd's), Protocol.
  using Done = std::function<void(Result<std::string>)>;

  EtcdClient(boost::asio::io_context& loop, ClientOptions options);
  ~EtcdClient();  // no callback follows
  EtcdClient(const EtcdClient&) = delete;

  // `done` is called within `limit`.
  void ask(GatewayRequest request, Duration limit, Done done);

  // Local numeric address of the newest connection to etcd; "" before the first.
  const std::string& own_address() const;

 private:
  boost::asio::io_context& loop_;
  std::shared_ptr<EtcdSession> session_;  // shared with pending operations
  std::map<int, std::shared_ptr<RpcCall>> calls_;
  int next_ = 0;
};

}  // namespace cpprun::etcd
