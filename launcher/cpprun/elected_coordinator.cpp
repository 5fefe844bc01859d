#include "launcher/cpprun/elected_coordinator.hpp"

#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "common/limits/election.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/own_addresses.hpp"
#include "launcher/cpprun/coordinator_instance.hpp"
#include "rendezvous/client/etcd/election_runner.hpp"
#include "rendezvous/server/coordinator_environment.hpp"
#include "rendezvous/server/loop_thread.hpp"

namespace cpprun {

namespace {

Result<etcd::ElectionRunnerOptions> election_options(const RendezvousConfig& config,
                                                     Incarnation embedded, uint16_t port) {
  etcd::ElectionRunnerOptions options;
  options.etcd = {config.etcd.endpoints, config.etcd.user, config.etcd.password};
  if (config.etcd.is_https) {
    auto tls = etcd::load_tls({config.etcd.ca_file, config.etcd.cert_file, config.etcd.key_file});
    if (!tls) return tls.error();
    options.etcd.tls = *tls;
  }
  options.prefix = config.etcd.prefix;
  options.election.run_id = config.run_id;
  options.election.self =
      control::Leader{NodeId{coordinator_options().host, embedded}, config.local_addr, port};
  options.election.lease = config.conf.lease;
  return options;
}

}  // namespace

class ElectedCoordinator::Impl {
 public:
  Impl(const RendezvousConfig& config, etcd::ElectionRunnerOptions options, Incarnation embedded,
       uint16_t port, ElectionCallbacks election_callbacks)
      : config_(config),
        embedded_(embedded),
        port_(port),
        election_callbacks_(std::move(election_callbacks)) {
    etcd::ElectionRunnerEvents events;
    events.on_elected = [this](const election::Elected& lead) { on_elected(lead); };
    events.on_lease_extended = [this](Instant until) { on_lease_extended(until); };
    events.on_persisted = [this] {
      if (coordinator_) coordinator_->service().on_persisted();
    };
    events.on_leadership_lost = [this](const std::string& why) { on_leadership_lost(why); };
    events.on_follow = [this](const election::FollowLeader& follow) {
      trouble_.reset();
      election_callbacks_.led_from(
          Endpoint{follow.leader.address, static_cast<uint16_t>(follow.leader.port)});
    };
    events.on_resigned = [this] {
      if (on_left_) std::exchange(on_left_, nullptr)();
    };
    events.on_trouble = [this](const std::string& why) { on_trouble(why); };
    election_ = std::make_unique<etcd::ElectionRunner>(loop().context(), std::move(options),
                                                       std::move(events));
    election_->start();
    thread_.start([this](const std::string& why) { fail(why); });
  }

  ~Impl() {
    thread_.end([this] {
      election_.reset();
      if (coordinator_) coordinator_->stop();
    });
  }

  void on_standing(bool is_led, bool would_lead) {
    loop().post([this, is_led, would_lead] {
      election_->set_candidate(would_lead);
      election_->set_has_leader(is_led);
    });
  }

  void leave(IdleWait& stay) {
    wait_until_idle(stay);
    auto left = std::make_shared<std::promise<void>>();
    auto done = left->get_future();
    loop().post([this, left] {
      on_left_ = [left] { left->set_value(); };
      const bool is_idle = coordinator_ && coordinator_->service().is_idle();
      resign();  // before the key is deleted: from here on no worker lease is extended
      election_->leave(is_idle);
    });
    done.wait_for(limits::kEtcdLeaveTimeout);
  }

 private:
  ServerLoop& loop() { return thread_.loop(); }

  void on_elected(const election::Elected& lead) {
    trouble_.reset();
    resign();
    raise_descriptor_limit();
    CoordinatorOptions options = coordinator_options_of(config_, embedded_);
    options.term = lead.term;
    options.leader_lease = LeaderLease{config_.run_id, lead.facts, lead.until};
    coordinator_ = std::make_unique<CoordinatorInstance>(loop(), config_, std::move(options));
    coordinator_->service().when_persisting(
        [this](const control::PersistedJobState& facts) { election_->write(facts); });
    if (Result<uint16_t> port = coordinator_->listen(Endpoint{"", port_}); !port) {
      log::error("this node can't lead the job: " + port.error().text);
      return give_up();
    }
    log::info("leading the job '" + config_.run_id + "' from this node");
    election_callbacks_.led_from(Endpoint{"127.0.0.1", port_});
  }

  void on_lease_extended(Instant until) {
    trouble_.reset();
    if (coordinator_) coordinator_->service().lead_until(until);
  }

  void on_leadership_lost(const std::string& why) {
    log::warning("this node leads the job no more: " + why);
    resign();
  }

  void fail(const std::string& why) {
    log::error("the coordinator in this process has failed and closes its connections: " + why);
    give_up();
  }

  // Deletes the key in etcd at once, so that another node can be elected.
  void give_up() {
    resign();
    election_->set_candidate(false);
    election_->leave(true);
  }

  void resign() {
    if (coordinator_) {
      coordinator_->stop();
      loop().post([gone = std::shared_ptr<CoordinatorInstance>(std::move(coordinator_))] {});
    }
    if (on_idle_) std::exchange(on_idle_, nullptr)();
  }

  // Warns once the trouble has lasted for a while, then at each reminder interval.
  void on_trouble(const std::string& why) {
    election_callbacks_.no_election(why);
    const Instant now = boot_now();
    if (!trouble_) trouble_.emplace(Trouble{now, now + limits::kHelloTimeout});
    if (now < trouble_->report_at) return;
    trouble_->report_at = now + config_.wait_reminder_interval;
    const auto lasts = static_cast<int64_t>(to_seconds(now - trouble_->since));
    log::warning(why + " (for " + std::to_string(lasts) + " s)");
  }

  void wait_until_idle(IdleWait& stay) {
    loop().post([this, is_exiting = stay.is_asked(), idle = stay.when_idle()] {
      on_idle_ = idle;
      if (!coordinator_) return resign();
      coordinator_->service().when_idle(is_exiting, [this] {
        if (on_idle_) std::exchange(on_idle_, nullptr)();
      });
    });
    const bool is_short = stay.is_asked();
    if (stay.is_over_within(is_short ? std::nullopt : std::optional(kStayReminderInterval))) return;
    log::warning("other agents still need the coordinator in this process; staying until they end");
    stay.is_over_within(std::nullopt);
  }

  struct Trouble {
    Instant since;
    Instant report_at;
  };

  const RendezvousConfig config_;
  const Incarnation embedded_;
  const uint16_t port_;
  const ElectionCallbacks election_callbacks_;
  LoopThread thread_;
  std::unique_ptr<CoordinatorInstance> coordinator_;  // while we lead
  std::unique_ptr<etcd::ElectionRunner> election_;
  std::optional<Trouble> trouble_;
  std::function<void()> on_left_;
  std::function<void()> on_idle_;  // called when no agent needs our coordinator, or we stop leading
};

ElectedCoordinator::ElectedCoordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ElectedCoordinator::~ElectedCoordinator() = default;

Result<std::unique_ptr<ElectedCoordinator>> ElectedCoordinator::start(
    const RendezvousConfig& config, Incarnation embedded, uint16_t port,
    ElectionCallbacks election_callbacks) {
  search_domains();  // reads a file, which the loop must not when it begins to lead
  Result<etcd::ElectionRunnerOptions> options = election_options(config, embedded, port);
  if (!options) return options.error();
  auto impl = std::make_unique<Impl>(config, std::move(*options), embedded, port,
                                     std::move(election_callbacks));
  return std::unique_ptr<ElectedCoordinator>(new ElectedCoordinator(std::move(impl)));
}

Arbiter ElectedCoordinator::arbiter() {
  return
      [impl = impl_.get()](bool is_led, bool would_lead) { impl->on_standing(is_led, would_lead); };
}

void ElectedCoordinator::leave(IdleWait& stay) { impl_->leave(stay); }

}  // namespace cpprun
