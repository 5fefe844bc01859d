#include "rendezvous/client/etcd/etcd_client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <utility>

#include "common/check.hpp"
#include "common/limits/election.hpp"
#include "rendezvous/client/etcd/rpc_call.hpp"

namespace cpprun::etcd {

class EtcdClient::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, ClientOptions options)
      : loop_(loop), session_(std::make_shared<EtcdSession>()) {
    CPPRUN_CHECK(!options.endpoints.empty());
    session_->options = std::move(options);
  }

  void ask(const Request& request, Duration limit, Done done) {
    if (calls_.size() >= limits::kEtcdCalls) {
      boost::asio::post(loop_, [self = shared_from_this(), done = std::move(done)] {
        if (!self->is_closed_) {
          done(Error{ErrorKind::Network, "etcd has not answered what was asked before"});
        }
      });
      return;
    }
    const int number = next_++;
    auto call = std::make_shared<RpcCall>(
        loop_, session_, request, limit,
        [self = shared_from_this(), number, done = std::move(done)](Result<std::string> result) {
          self->calls_.erase(number);
          done(std::move(result));
        });
    calls_.emplace(number, call);
    call->start();
  }

  void close() {
    is_closed_ = true;
    for (const auto& [number, call] : calls_) call->cancel();
    calls_.clear();
    if (session_->login) std::exchange(session_->login, nullptr)->cancel();
    for (const std::shared_ptr<Transport>& transport : session_->idle) transport->close();
    session_->idle.clear();
  }

  const std::string& own_address() const { return session_->own_address; }

 private:
  boost::asio::io_context& loop_;
  std::shared_ptr<EtcdSession> session_;
  std::map<int, std::shared_ptr<RpcCall>> calls_;
  int next_ = 0;
  bool is_closed_ = false;
};

EtcdClient::EtcdClient(boost::asio::io_context& loop, ClientOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {}
EtcdClient::~EtcdClient() { impl_->close(); }
void EtcdClient::ask(const Request& request, Duration limit, Done done) {
  impl_->ask(request, limit, std::move(done));
}
const std::string& EtcdClient::own_address() const { return impl_->own_address(); }

}  // namespace cpprun::etcd
