#include "launcher/cpprun/embedded_coordinator.hpp"

#include <atomic>
#include <chrono>

#include "common/log/log.hpp"
#include "common/machine/identity.hpp"
#include "common/machine/own_addresses.hpp"
#include "common/machine/sockets.hpp"
#include "common/version.hpp"
#include "launcher/cpprun/coordinator_instance.hpp"
#include "rendezvous/client/leader_announcer.hpp"
#include "rendezvous/server/coordinator_environment.hpp"
#include "rendezvous/server/loop_thread.hpp"

namespace cpprun {

namespace {

CoordinatorOptions standby_options(const RendezvousConfig& config, Term term, Incarnation standby,
                                   const std::string& job_key) {
  CoordinatorOptions options = coordinator_options_of(config, standby);
  options.job_key = job_key;
  options.term = term;
  options.standby_of = config.run_id;
  return options;
}

// A job of one node belongs to the node that hosts it: no other agent may join it first. The same
// is true at a port that follows from the job, where other jobs look for their own coordinator.
CoordinatorOptions own_options(const RendezvousConfig& config, Incarnation embedded) {
  CoordinatorOptions options = coordinator_options_of(config, embedded);
  options.leads_own_job_alone = !config.further_ports.empty();
  if (config.max_nodes == 1 || options.leads_own_job_alone) options.own_job = config.run_id;
  return options;
}

// Where to listen, and where our own agent then reaches us.
struct HostAddress {
  std::string listen_host;  // "" is every interface
  std::string own_address;
  uint16_t port = 0;
};

bool must_host(const RendezvousConfig& config) {
  if (config.is_standalone) return true;
  const bool is_first = config.backend == Backend::Static && config.node_rank.value_or(0) == 0;
  return config.conf.is_host.value_or(is_first);
}

// Without a lookup: a name means all interfaces, because its addresses are not known here.
HostAddress host_address_without_lookup(const RendezvousConfig& config) {
  if (config.is_standalone) return {"127.0.0.1", "127.0.0.1", 0};
  const std::vector<std::string> addresses = known_addresses(config.endpoint.host);
  const std::string own = first_own_address(addresses);
  if (own.empty()) return {"", "127.0.0.1", config.endpoint.port};
  return {config.endpoint.host, own, config.endpoint.port};
}

// Nothing if the endpoint is another machine, or not known yet. Other nodes may resolve a name to
// other addresses than we do (Debian maps the host name to 127.0.1.1), so a name means all
// interfaces.
std::optional<HostAddress> host_address_at(const RendezvousConfig& config,
                                           const std::vector<std::string>& addresses) {
  const Endpoint& endpoint = config.endpoint;
  if (addresses.empty()) {
    if (!is_same_host_name(endpoint.host, own_host_name())) return std::nullopt;
    return HostAddress{"", "127.0.0.1", endpoint.port};
  }
  const std::string own = first_own_address(addresses);
  if (own.empty()) return std::nullopt;
  const bool is_name = known_addresses(endpoint.host).empty();
  return HostAddress{is_name ? "" : endpoint.host, own, endpoint.port};
}

}  // namespace

class EmbeddedCoordinator::Impl {
 public:
  Impl(const RendezvousConfig& config, CoordinatorOptions coordinator)
      : is_one_node_(config.max_nodes == 1),
        coordinator_(thread_.loop(), config, std::move(coordinator)) {}

  ~Impl() {
    thread_.end([this] {
      leader_announcer_.reset();
      coordinator_.stop();
    });
  }

  // Before the thread starts. Announces the new leader to the server at the job's endpoint.
  void announce_leader(const RendezvousConfig& config, Term term, const control::Standby& standby,
                       const std::string& job_key) {
    control::Hello hello;
    hello.version = version();
    hello.run_id = config.run_id;
    hello.node = NodeId{standby.address, standby.node};
    control::AnnounceLeader message{term, standby.address, standby.port};
    message.mac = mac_of_leader(job_key, config.run_id, message);
    leader_announcer_ =
        std::make_unique<LeaderAnnouncer>(thread_.loop().context(), config.endpoint,
                                          std::move(hello), std::move(message), config.job_tls);
  }

  // At the first free one of the job's ports.
  Status listen_at_first_free(HostAddress host_address, const std::vector<uint16_t>& further) {
    Status first = listen(host_address);
    if (first || further.empty()) return first;
    for (uint16_t port : further) {
      host_address.port = port;
      if (listen(host_address)) return {};
    }
    return Error{first.error().kind,
                 first.error().text + " (and so are the " + std::to_string(further.size()) +
                     " further ports of this job); name a free one with --rdzv-backend=c10d "
                     "--rdzv-endpoint=HOST:PORT on all nodes"};
  }

  Status listen(const HostAddress& host_address) {
    Result<uint16_t> port =
        coordinator_.listen(Endpoint{host_address.listen_host, host_address.port});
    if (!port) return port.error();
    endpoint_ = Endpoint{host_address.own_address, *port};
    return {};
  }

  void start_thread() {
    thread_.start([this](const std::string& why) { fail(why); });
  }

  UniqueFd connect(const Endpoint& at) {
    if (!is_one_node_ || has_failed_ || at != endpoint_) return UniqueFd();
    auto [agents_end, our_end] = connected_pair();
    // Shared, because std::function copies it.
    auto shared_end = std::make_shared<UniqueFd>(std::move(our_end));
    if (!shared_end->is_open()) return UniqueFd();
    thread_.loop().post(
        [this, shared_end] { coordinator_.adopt(std::move(*shared_end), endpoint_.host); });
    return std::move(agents_end);
  }

  void wait_until_idle(IdleWait& stay) {
    thread_.loop().post([this, is_exiting = stay.is_asked(), idle = stay.when_idle()] {
      coordinator_.service().when_idle(is_exiting, idle);
    });
    if (stay.is_over_within(kStayReminderInterval)) return;
    log::warning("other agents still need the rendezvous at " + to_string(endpoint_) +
                 "; staying until they end" + stay.limit_text());
    stay.is_over_within(std::nullopt);
  }

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  // The agents, also the one of this process, see closed connections and a closed port, as if this
  // process had died: the standby coordinator takes over, or the job ends with an error.
  void fail(const std::string& why) {
    has_failed_ = true;
    log::error("the coordinator in this process has failed and closes its connections: " + why);
    leader_announcer_.reset();
    coordinator_.stop();
  }

  const bool is_one_node_;
  std::atomic<bool> has_failed_ = false;
  LoopThread thread_;
  CoordinatorInstance coordinator_;
  std::unique_ptr<LeaderAnnouncer> leader_announcer_;  // after a take-over only
  Endpoint endpoint_;
};

EmbeddedCoordinator::EmbeddedCoordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EmbeddedCoordinator::~EmbeddedCoordinator() = default;

Result<std::unique_ptr<EmbeddedCoordinator>> EmbeddedCoordinator::start(
    const RendezvousConfig& config, Incarnation embedded) {
  search_domains();  // reads a file, which a later start on the agent's loop must not
  if (!must_host(config)) {
    const std::vector<std::string> addresses = known_addresses(config.endpoint.host);
    return addresses.empty() ? nullptr : start_if_free(config, embedded, addresses);
  }
  // Workers do not inherit the raised limit: the agent gives them the one that it found.
  if (!config.is_standalone) raise_descriptor_limit();
  auto impl = std::make_unique<Impl>(config, own_options(config, embedded));
  const HostAddress host_address = host_address_without_lookup(config);
  if (Status ok = impl->listen_at_first_free(host_address, config.further_ports); !ok)
    return ok.error();
  impl->start_thread();
  return std::unique_ptr<EmbeddedCoordinator>(new EmbeddedCoordinator(std::move(impl)));
}

bool EmbeddedCoordinator::may_start_later(const RendezvousConfig& config) {
  return config.backend == Backend::Cpprun && config.conf.is_host.value_or(true);
}

std::unique_ptr<EmbeddedCoordinator> EmbeddedCoordinator::start_if_free(
    const RendezvousConfig& config, Incarnation embedded,
    const std::vector<std::string>& addresses) {
  if (!may_start_later(config)) return nullptr;
  const std::optional<HostAddress> host_address = host_address_at(config, addresses);
  if (!host_address || !is_port_free(host_address->own_address, host_address->port)) return nullptr;
  auto impl = std::make_unique<Impl>(config, own_options(config, embedded));
  if (Status ok = impl->listen(*host_address); !ok) {
    log::debug(ok.error().text);  // another agent has bound the port first
    return nullptr;
  }
  raise_descriptor_limit();
  impl->start_thread();
  return std::unique_ptr<EmbeddedCoordinator>(new EmbeddedCoordinator(std::move(impl)));
}

Result<std::unique_ptr<EmbeddedCoordinator>> EmbeddedCoordinator::take_over(
    const RendezvousConfig& config, Term term, const control::Standby& standby,
    const std::string& job_key) {
  raise_descriptor_limit();
  auto impl = std::make_unique<Impl>(config, standby_options(config, term, standby.node, job_key));
  const HostAddress host_address{"", "127.0.0.1", static_cast<uint16_t>(standby.port)};
  if (Status ok = impl->listen(host_address); !ok) return ok.error();
  impl->announce_leader(config, term, standby, job_key);
  impl->start_thread();
  return std::unique_ptr<EmbeddedCoordinator>(new EmbeddedCoordinator(std::move(impl)));
}

const Endpoint& EmbeddedCoordinator::endpoint() const { return impl_->endpoint(); }
UniqueFd EmbeddedCoordinator::connect(const Endpoint& at) { return impl_->connect(at); }
void EmbeddedCoordinator::wait_until_idle(IdleWait& stay) { impl_->wait_until_idle(stay); }

}  // namespace cpprun
