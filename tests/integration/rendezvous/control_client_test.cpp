// How an agent's connection to its coordinator ends when another program listens there.
#include "rendezvous/client/control_client.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <string_view>

#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

class ControlClientEnd : public ::testing::Test {
 protected:
  ControlClientEnd() {
    acceptor_.async_accept(peer_, [](auto) {});
    run_until([&] { return is_connected_ && peer_.is_open(); });
  }

  void run_until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!holds() && std::chrono::steady_clock::now() < end) loop_.run_one_for(100ms);
    ASSERT_TRUE(holds());
  }

  void close() {
    client_.close(false, [this] { is_gone_ = true; });
  }

  ControlClient::Events events() {
    ControlClient::Events events;
    events.on_connected = [this](const auto&, const auto&) { is_connected_ = true; };
    return events;
  }

  asio::io_context loop_{1};
  tcp::acceptor acceptor_{loop_, {asio::ip::address_v4::loopback(), 0}};
  tcp::socket peer_{loop_};
  bool is_connected_ = false;
  bool is_gone_ = false;
  ControlClient client_{loop_, {"127.0.0.1", acceptor_.local_endpoint().port()}, {}, events()};
};

TEST_F(ControlClientEnd, FollowsAtOnceWhereNoMessageWasSent) {
  close();
  run_until([&] { return is_gone_; });
}

TEST_F(ControlClientEnd, FollowsWhereThePeerAnswersWithGarbageAndReadsNothing) {
  control::Register large;
  large.addresses.assign(2000, "192.168.100.100");
  for (int i = 0; i < 500; ++i) client_.send(large);
  close();
  loop_.run_for(200ms);
  ASSERT_FALSE(is_gone_) << "the kernel took all messages";
  constexpr std::string_view kAnswer = "HTTP/1.0 400 Bad Request\r\n\r\n";
  asio::write(peer_, asio::buffer(kAnswer));
  run_until([&] { return is_gone_; });
}

}  // namespace
}  // namespace cpprun
