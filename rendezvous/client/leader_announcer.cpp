#include "rendezvous/client/leader_announcer.hpp"

#include <boost/asio/io_context.hpp>
#include <utility>

#include "common/loop/timer.hpp"
#include "rendezvous/client/control_client.hpp"
#include "rendezvous/client/core/leader_announcer_core.hpp"

namespace cpprun {

class LeaderAnnouncer::Impl {
 public:
  Impl(boost::asio::io_context& loop, const Endpoint& endpoint, control::Hello hello,
       control::AnnounceLeader acting)
      : hello_(std::move(hello)),
        acting_(std::move(acting)),
        client_(loop, endpoint, options(), events()),
        timer_(loop, [this] { on_time(); }) {
    plan();
  }

 private:
  static ControlClient::Options options() {
    ControlClient::Options options;
    options.back_off_max = limits::kAnnounceInterval;
    return options;
  }

  ControlClient::Events events() {
    ControlClient::Events events;
    events.on_connected = [this](const auto&, const Endpoint&) { send_hello(); };
    events.on_message = [this](const auto&) { core_.on_answer(); };
    events.on_disconnected = [this] { core_.on_ended(); };
    return events;
  }

  void send_hello() {
    core_.on_connected();
    client_.send(hello_);
    client_.send(acting_);
  }

  void plan() { timer_.set(boot_now() + limits::kAnnounceInterval); }

  void on_time() {
    const LeaderAnnouncerCore::Action what = core_.on_time();
    if (what == LeaderAnnouncerCore::Action::Announce) client_.send(acting_);
    if (what == LeaderAnnouncerCore::Action::Reconnect) client_.reconnect();
    plan();
  }

  const control::Hello hello_;
  const control::AnnounceLeader acting_;
  LeaderAnnouncerCore core_;
  ControlClient client_;
  Timer timer_;
};

LeaderAnnouncer::LeaderAnnouncer(boost::asio::io_context& loop, const Endpoint& endpoint,
                                 control::Hello hello, control::AnnounceLeader acting)
    : impl_(std::make_unique<Impl>(loop, endpoint, std::move(hello), std::move(acting))) {}
LeaderAnnouncer::~LeaderAnnouncer() = default;

}  // namespace cpprun
