#include "rendezvous/client/leader_announcer.hpp"

#include <utility>

#include "common/loop/timer.hpp"

namespace cpprun {

LeaderAnnouncer::LeaderAnnouncer(boost::asio::io_context& loop, const Endpoint& endpoint,
                                 control::Hello hello, control::AnnounceLeader acting,
                                 std::shared_ptr<const JobTls> tls)
    : hello_(std::move(hello)),
      acting_(std::move(acting)),
      client_(loop, endpoint, {.back_off_max = limits::kAnnounceInterval, .tls = std::move(tls)},
              events()),
      timer_(std::make_unique<Timer>(loop, [this] { on_time(); })) {
  timer_->set(boot_now() + limits::kAnnounceInterval);
}
LeaderAnnouncer::~LeaderAnnouncer() = default;

ControlClient::Events LeaderAnnouncer::events() {
  ControlClient::Events events;
  events.on_connected = [this](const auto&, const Endpoint&) {
    core_.on_connected();
    client_.send(hello_);
    client_.send(acting_);
  };
  events.on_message = [this](const auto&) { core_.on_answer(); };
  events.on_disconnected = [this] { core_.on_ended(); };
  return events;
}

void LeaderAnnouncer::on_time() {
  const LeaderAnnouncerCore::Action what = core_.on_time();
  if (what == LeaderAnnouncerCore::Action::Announce) client_.send(acting_);
  if (what == LeaderAnnouncerCore::Action::Reconnect) client_.reconnect();
  timer_->set(boot_now() + limits::kAnnounceInterval);
}

}  // namespace cpprun
