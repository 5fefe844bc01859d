#include "launcher/rendezvous_host.hpp"

#include <chrono>

#include "common/log/log.hpp"
#include "launcher/loop_thread.hpp"
#include "launcher/network/own_addresses.hpp"
#include "launcher/seat.hpp"
#include "rendezvous/client/herald.hpp"
#include "rendezvous/server/coordinator_setup.hpp"

namespace cpprun {

namespace {

constexpr auto kSayStaying = std::chrono::seconds(1);

CoordinatorOptions heir_options(const RendezvousConfig& config, Epoch epoch, Incarnation heir) {
  CoordinatorOptions options = coordinator_options_of(config, heir);
  options.epoch = epoch;
  options.heir_of = config.run_id;
  return options;
}

// Where to listen, and where our own agent then reaches us.
struct Place {
  std::string listen_host;  // "" is every interface
  std::string own_address;
  uint16_t port = 0;
  bool must_host = false;  // a taken port is an error, not a hint that another agent hosts
};

// Nothing: another node hosts.
Result<std::optional<Place>> find_place(const RendezvousConfig& config) {
  if (config.is_standalone) return std::optional(Place{"127.0.0.1", "127.0.0.1", 0, true});
  bool is_static = config.backend == Backend::Static;
  bool must_host = config.conf.is_host.value_or(is_static && config.node_rank.value_or(0) == 0);
  bool must_not = config.conf.is_host == false || (is_static && !must_host);
  if (must_not) return std::optional<Place>();
  Result<ResolvedHost> host = resolve_host(config.endpoint.host);
  if (!host) {
    if (must_host) return host.error();
    return std::optional<Place>();  // it may become resolvable; the agent keeps trying
  }
  std::string own = first_own_address(host->addresses);
  if (own.empty() && !must_host) return std::optional<Place>();
  Place place{host->is_numeric && !own.empty() ? config.endpoint.host : "",
              own.empty() ? "127.0.0.1" : own, config.endpoint.port, must_host};
  // Other nodes see a name's other addresses (Debian maps the host name to 127.0.1.1), so a name
  // means all interfaces.
  return std::optional(place);
}

}  // namespace

class RendezvousHost::Impl {
 public:
  Impl(const RendezvousConfig& config, CoordinatorOptions coordinator)
      : seat_(thread_.loop(), config, std::move(coordinator)) {}

  ~Impl() {
    thread_.end([this] {
      herald_.reset();
      seat_.stop();
    });
  }

  // Before the thread starts. Says where the job is led from, to whoever listens at its endpoint.
  void tell_endpoint(const RendezvousConfig& config, Epoch epoch, const control::Heir& heir) {
    control::Hello hello;
    hello.version = CPPRUN_VERSION;
    hello.run_id = config.run_id;
    hello.node = NodeId{heir.address, heir.node};
    herald_ = std::make_unique<Herald>(thread_.loop().context(), config.endpoint, std::move(hello),
                                       control::Acting{epoch, heir.address, heir.port});
  }

  Status listen(const Place& place) {
    Result<uint16_t> port = seat_.listen(Endpoint{place.listen_host, place.port});
    if (!port) return port.error();
    endpoint_ = Endpoint{place.own_address, *port};
    return {};
  }

  void start_thread() { thread_.start(); }

  void wait_until_idle(Stay& stay) {
    thread_.loop().post([this, idle = stay.when_idle()] { seat_.service().when_idle(idle); });
    if (stay.is_over_within(kSayStaying)) return;
    log::warning("other agents still need the rendezvous at " + to_string(endpoint_) +
                 "; staying until they end" + stay.limit_text());
    stay.is_over_within(std::nullopt);
  }

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  LoopThread thread_;
  Seat seat_;
  std::unique_ptr<Herald> herald_;  // of an heir
  Endpoint endpoint_;
};

RendezvousHost::RendezvousHost(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RendezvousHost::~RendezvousHost() = default;

Result<std::unique_ptr<RendezvousHost>> RendezvousHost::start(const RendezvousConfig& config,
                                                              Incarnation embedded) {
  Result<std::optional<Place>> place = find_place(config);
  if (!place) return place.error();
  if (!*place) return std::unique_ptr<RendezvousHost>();
  // The workers keep the limit that their agent found.
  if (!config.is_standalone) raise_descriptor_limit();
  auto impl = std::make_unique<Impl>(config, coordinator_options_of(config, embedded));
  if (Status ok = impl->listen(**place); !ok) {
    if ((*place)->must_host) return ok.error();
    log::info(ok.error().text + "; taking it that another agent hosts the rendezvous there");
    return std::unique_ptr<RendezvousHost>();
  }
  impl->start_thread();
  return std::unique_ptr<RendezvousHost>(new RendezvousHost(std::move(impl)));
}

Result<std::unique_ptr<RendezvousHost>> RendezvousHost::take_over(const RendezvousConfig& config,
                                                                  Epoch epoch,
                                                                  const control::Heir& heir) {
  raise_descriptor_limit();
  auto impl = std::make_unique<Impl>(config, heir_options(config, epoch, heir.node));
  const Place place{"", "127.0.0.1", static_cast<uint16_t>(heir.port), true};
  if (Status ok = impl->listen(place); !ok) return ok.error();
  impl->tell_endpoint(config, epoch, heir);
  impl->start_thread();
  return std::unique_ptr<RendezvousHost>(new RendezvousHost(std::move(impl)));
}

const Endpoint& RendezvousHost::endpoint() const {
  return impl_->endpoint();
}
void RendezvousHost::wait_until_idle(Stay& stay) {
  impl_->wait_until_idle(stay);
}

}  // namespace cpprun
