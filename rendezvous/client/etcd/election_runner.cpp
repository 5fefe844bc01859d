#include "rendezvous/client/etcd/election_runner.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

#include "common/limits/election.hpp"
#include "common/loop/effect_runner.hpp"

namespace cpprun::etcd {

namespace asio = boost::asio;

struct ElectionRunner::Impl : std::enable_shared_from_this<Impl> {
  Impl(asio::io_context& loop, ElectionRunnerOptions options, ElectionRunnerEvents events)
      : loop_(loop),
        options_(std::move(options)),
        events_(std::move(events)),
        client_(std::make_unique<EtcdClient>(loop, options_.etcd)),
        greet_timer_(loop, [this] { greet(); }) {}

  // Posted, because a decision could change state that the caller is using.
  template <class Call>
  void later(Call call) {
    asio::post(loop_, [self = shared_from_this(), call] {
      if (!self->is_closed_) call(*self);
    });
  }

  void ask(const election::Request& what, Duration most, auto then) {
    client_->ask(request_of(what, options_.prefix), most,
                 [self = shared_from_this(), what, then](const Result<std::string>& reply) {
                   then(response_of(what, self->options_.prefix, reply));
                 });
  }

  // A candidate needs its own address, which the first connection to etcd determines.
  void greet() {
    const std::string& run_id = options_.election.run_id;
    ask(election::Read{control::leader_key(run_id), control::job_state_key(run_id)},
        limits::kEtcdRetryTimeout,
        [this](const election::Response& response) { on_greeted(response); });
  }

  void on_greeted(const election::Response& response) {
    if (std::holds_alternative<election::ReadResult>(response)) return begin();
    if (const auto* refused = std::get_if<election::Refused>(&response)) {
      events_.on_trouble("etcd: " + refused->why);
    } else if (const auto* failed = std::get_if<election::Failed>(&response)) {
      events_.on_trouble("etcd: " + failed->why);
    }
    greet_timer_.set(boot_now() + limits::kEtcdRetryInterval);
  }

  void begin() {
    Election::Options options = options_.election;
    if (options.self.address.empty()) options.self.address = client_->own_address();
    core_.emplace(std::move(options));
    core_->set_candidate(is_candidate_);
    runner_.emplace(loop_, *core_, [this](const auto& effect) { carry_out(effect); });
    runner_->run(&Election::start);
  }

  void carry_out(const election::SendRequest& request) {
    ask(request.what, request.most, [this, id = request.id](const election::Response& response) {
      runner_->run(&Election::on_response, id, response);
    });
  }
  void carry_out(const election::Elected& lead) { events_.on_elected(lead); }
  void carry_out(const election::ExtendLease& prolong) { events_.on_lease_extended(prolong.until); }
  void carry_out(const election::Persisted&) { events_.on_persisted(); }
  void carry_out(const election::LeadershipLost& lost) { events_.on_leadership_lost(lost.why); }
  void carry_out(const election::FollowLeader& follow) { events_.on_follow(follow); }
  void carry_out(const election::Resigned&) { events_.on_resigned(); }
  void carry_out(const election::Trouble& trouble) { events_.on_trouble(trouble.text); }

  asio::io_context& loop_;
  const ElectionRunnerOptions options_;
  const ElectionRunnerEvents events_;
  std::unique_ptr<EtcdClient> client_;
  Timer greet_timer_;
  std::optional<Election> core_;  // this and runner_: set after etcd's first reply
  std::optional<EffectRunner<Election, election::Effects>> runner_;
  bool is_candidate_ = true;
  bool is_closed_ = false;
};

ElectionRunner::ElectionRunner(asio::io_context& loop, ElectionRunnerOptions options,
                               ElectionRunnerEvents events)
    : impl_(std::make_shared<Impl>(loop, std::move(options), std::move(events))) {}
ElectionRunner::~ElectionRunner() {
  impl_->is_closed_ = true;
  impl_->greet_timer_.set(Instant::never());
  if (impl_->runner_) impl_->runner_->close();
  impl_->client_.reset();
}
void ElectionRunner::start() {
  impl_->later([](Impl& impl) { impl.greet(); });
}
void ElectionRunner::set_has_leader(bool is_led) {
  impl_->later([is_led](Impl& impl) {
    if (impl.core_) impl.runner_->run(&Election::set_has_leader, is_led);
  });
}
void ElectionRunner::set_candidate(bool is_willing) {
  impl_->later([is_willing](Impl& impl) {
    impl.is_candidate_ = is_willing;
    if (impl.core_) impl.core_->set_candidate(is_willing);
  });
}
void ElectionRunner::write(const control::PersistedJobState& facts) {
  impl_->later([facts](Impl& impl) {
    // Otherwise leadership was lost: no one waits for the write.
    if (impl.core_ && impl.core_->is_leading()) impl.runner_->run(&Election::write, facts);
  });
}
void ElectionRunner::leave(bool is_idle) {
  impl_->later([is_idle](Impl& impl) {
    if (!impl.core_) return impl.carry_out(election::Resigned{});
    impl.runner_->run(&Election::leave, is_idle);
  });
}

}  // namespace cpprun::etcd
