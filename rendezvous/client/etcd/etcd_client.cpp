#include "rendezvous/client/etcd/etcd_client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <utility>

#include "common/check.hpp"
#include "common/limits/election.hpp"
#include "rendezvous/client/etcd/rpc_call.hpp"

namespace cpprun::etcd {

EtcdClient::EtcdClient(boost::asio::io_context& loop, ClientOptions options)
    : loop_(loop), session_(std::make_shared<EtcdSession>()) {
  CPPRUN_CHECK(!options.endpoints.empty());
  session_->options = std::move(options);
}

EtcdClient::~EtcdClient() {
  session_->is_closed = true;
  for (const auto& [number, call] : calls_) call->cancel();
  if (session_->login) std::exchange(session_->login, nullptr)->cancel();
  for (const std::shared_ptr<Transport>& transport : session_->idle) transport->close();
  session_->idle.clear();
}

void EtcdClient::ask(GatewayRequest request, Duration limit, Done done) {
  if (calls_.size() >= limits::kEtcdCalls) {
    boost::asio::post(loop_, [session = session_, done = std::move(done)] {
      if (session->is_closed) return;
      done(Error{ErrorKind::Network, "etcd has not answered what was asked before"});
    });
    return;
  }
  const int number = next_++;
  // A cancelled call does not call back, so `this` is alive then.
  auto on_result = [this, number, done = std::move(done)](Result<std::string> result) {
    calls_.erase(number);
    done(std::move(result));
  };
  auto call =
      std::make_shared<RpcCall>(loop_, session_, std::move(request), limit, std::move(on_result));
  calls_.emplace(number, call);
  call->start();
}

const std::string& EtcdClient::own_address() const { return session_->own_address; }

}  // namespace cpprun::etcd
