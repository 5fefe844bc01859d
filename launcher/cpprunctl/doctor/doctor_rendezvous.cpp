#include "launcher/cpprunctl/doctor/doctor_rendezvous.hpp"

#include "common/http/blocking_socket.hpp"
#include "common/log/log.hpp"
#include "common/machine/own_addresses.hpp"
#include "common/machine/sockets.hpp"
#include "rendezvous/server/loop_thread.hpp"
#include "rendezvous/server/server.hpp"

namespace cpprun::ctl {
using std::chrono::duration_cast;
using std::chrono::milliseconds;

// A TCPStore server on a thread of its own.
class DoctorRendezvous::StoreHost {
 public:
  // Null: the endpoint is not an address of this machine, or its port is taken.
  static std::unique_ptr<StoreHost> try_start(const Endpoint& endpoint) {
    const Result<ResolvedHost> host = resolve_host(endpoint.host);
    if (!host || first_own_address(host->addresses).empty()) return nullptr;
    auto made = std::make_unique<StoreHost>();
    // A name means all interfaces: other nodes may resolve it to other addresses.
    const std::string address = host->is_numeric ? endpoint.host : "";
    if (!made->server_->listen({address, endpoint.port})) return nullptr;
    made->thread_.start([server = made->server_.get()](const std::string& why) {
      log::error("the rendezvous of the checks has failed: " + why);
      server->stop();
    });
    return made;
  }
  StoreHost() {
    ServerHooks hooks;
    hooks.store_for_main_port = [store = store_] { return store; };
    server_ = std::make_unique<Server>(thread_.loop().context(), ServerOptions{}, std::move(hooks));
  }
  ~StoreHost() {
    thread_.end([this] { server_->stop(); });
  }

 private:
  LoopThread thread_;
  std::shared_ptr<Store> store_ = std::make_shared<Store>();  // shared: connections may outlive us
  std::unique_ptr<Server> server_;
};

DoctorRendezvous::~DoctorRendezvous() = default;

Result<std::unique_ptr<DoctorRendezvous>> DoctorRendezvous::join(const Endpoint& endpoint,
                                                                 int64_t count, Duration limit) {
  std::unique_ptr<StoreHost> host = StoreHost::try_start(endpoint);
  worker::StoreClientOptions options;
  options.connect_timeout = duration_cast<milliseconds>(limit);
  options.timeout = duration_cast<milliseconds>(limit);
  options.prefix = "cpprun-doctor";
  Result<worker::StoreClient> store = worker::StoreClient::connect(to_string(endpoint), options);
  if (!store) return store.error();
  Result<int64_t> arrival = store->add("arrivals", 1);
  if (!arrival) return arrival.error();
  std::string own_address;
  if (auto connection = dial(endpoint, limit)) own_address = local_name((*connection)->fd());
  return std::unique_ptr<DoctorRendezvous>(
      new DoctorRendezvous(std::move(host), std::move(*store), (*arrival - 1) % count,
                           std::to_string((*arrival - 1) / count) + "/", std::move(own_address)));
}

DoctorRendezvous::DoctorRendezvous(std::unique_ptr<StoreHost> host, worker::StoreClient store,
                                   int64_t number, std::string prefix, std::string own_address)
    : host_(std::move(host)),
      store_(std::move(store)),
      number_(number),
      prefix_(std::move(prefix)),
      own_address_(std::move(own_address)) {}

Status DoctorRendezvous::publish(const std::string& key, const std::string& text) {
  return store_.set(prefix_ + key, text);
}

std::optional<std::string> DoctorRendezvous::await(const std::string& key, Duration limit) {
  const std::string whole = prefix_ + key;
  if (!store_.wait({whole}, duration_cast<milliseconds>(limit))) return std::nullopt;
  Result<std::string> text = store_.get(whole);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

}  // namespace cpprun::ctl
