#include "tests/support/sim/leader_announcer.hpp"

#include <utility>

#include "common/limits/rendezvous.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun::sim {

LeaderAnnouncer::LeaderAnnouncer(SimContext& context, HostId host, control::Hello hello,
                                 std::function<control::AnnounceLeader()> message)
    : context_(context),
      hello_(std::move(hello)),
      message_(std::move(message)),
      program_(context.network.add(host, *this)) {
  dial();
  tick();
}

void LeaderAnnouncer::end() {
  if (!std::exchange(is_alive_, false)) return;
  context_.network.end(program_);
}

void LeaderAnnouncer::set_frozen(bool is_frozen) {
  is_frozen_ = is_frozen;
  context_.network.set_reading(program_, !is_frozen);
  if (!is_frozen) context_.network.deliver_unread(program_);
}

void LeaderAnnouncer::dial() {
  if (is_alive_) context_.network.dial(program_, context_.coordinator_host, kJobPort);
}

void LeaderAnnouncer::dial_later() {
  context_.event_queue.in(limits::kAnnounceInterval,
                          [this] { is_frozen_ ? dial_later() : dial(); });
}

void LeaderAnnouncer::send(Bytes bytes) {
  control::append_frame(bytes, control::encode(control::AgentMessage(message_())));
  context_.network.send(program_, *connection_, std::move(bytes));
}

void LeaderAnnouncer::on_dialled(ConnectionId connection, bool is_connected, const std::string&) {
  if (!is_connected) return dial_later();
  connection_ = connection;
  core_.on_connected();
  Bytes bytes(std::begin(control::kMagic), std::end(control::kMagic));
  control::append_frame(bytes, control::encode(control::AgentMessage(hello_)));
  send(std::move(bytes));
}

void LeaderAnnouncer::on_ended(ConnectionId connection, Ending) {
  context_.network.close(program_, connection, Ending::Reset);
  connection_.reset();
  core_.on_ended();
  dial_later();
}

void LeaderAnnouncer::tick() {
  context_.event_queue.in(limits::kAnnounceInterval, [this] {
    if (!is_alive_) return;
    if (!is_frozen_) on_time();
    tick();
  });
}

void LeaderAnnouncer::on_time() {
  const LeaderAnnouncerCore::Action what = core_.on_time();
  if (what == LeaderAnnouncerCore::Action::Announce) send({});
  if (what != LeaderAnnouncerCore::Action::Reconnect) return;
  context_.network.close(program_, *std::exchange(connection_, std::nullopt), Ending::Reset);
  dial_later();
}

}  // namespace cpprun::sim
