#include "rendezvous/client/herald.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "rendezvous/client/control_client.hpp"
#include "rendezvous/client/core/herald_core.hpp"

namespace cpprun {

class Herald::Impl {
 public:
  Impl(boost::asio::io_context& loop, const Endpoint& endpoint, control::Hello hello,
       control::Acting acting)
      : hello_(std::move(hello)),
        acting_(std::move(acting)),
        client_(loop, endpoint, options(), events()),
        timer_(loop) {
    plan();
  }

 private:
  static ControlClient::Options options() {
    ControlClient::Options options;
    options.back_off_max = limits::kTellEndpoint;
    return options;
  }

  ControlClient::Events events() {
    ControlClient::Events events;
    events.on_connected = [this](const auto&, const Endpoint&) { say_hello(); };
    events.on_message = [this](const auto&) { core_.on_answer(); };
    events.on_disconnected = [this] { core_.on_ended(); };
    return events;
  }

  void say_hello() {
    core_.on_connected();
    client_.send(hello_);
    client_.send(acting_);
  }

  void plan() {
    timer_.expires_after(limits::kTellEndpoint);
    timer_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) on_time();
    });
  }

  void on_time() {
    const HeraldCore::Do what = core_.on_time();
    if (what == HeraldCore::Do::Say) client_.send(acting_);
    if (what == HeraldCore::Do::DialAgain) client_.reconnect();
    plan();
  }

  const control::Hello hello_;
  const control::Acting acting_;
  HeraldCore core_;
  ControlClient client_;
  boost::asio::steady_timer timer_;
};

Herald::Herald(boost::asio::io_context& loop, const Endpoint& endpoint, control::Hello hello,
               control::Acting acting)
    : impl_(std::make_unique<Impl>(loop, endpoint, std::move(hello), std::move(acting))) {}
Herald::~Herald() = default;

}  // namespace cpprun
