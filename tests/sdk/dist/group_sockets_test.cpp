#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>

#include "common/machine/unique_fd.hpp"
#include "cpprun/dist/group/group_sockets.hpp"

namespace {

using cpprun::UniqueFd;
using cpprun::dist::GroupSockets;

// A TCP connection of this process with itself: `own` is one of a group, `peer` is another rank's.
class GroupSocketsTest : public ::testing::Test {
 protected:
  GroupSocketsTest() {
    ::signal(SIGPIPE, SIG_IGN);
    GroupSockets::follow();
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_.get(), address(), size_), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), address(), &size_), 0);
  }
  ~GroupSocketsTest() override {
    GroupSockets::forget();
    ::signal(SIGPIPE, SIG_DFL);
  }

  // The connection of a group, as the backend makes it.
  void connect() {
    peer_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(peer_.get(), address(), size_), 0);
    const GroupSockets::Appearing appearing;
    own_ = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(own_.is_open());
  }
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }
  bool peer_can_write() { return ::send(peer_.get(), "x", 1, 0) == 1; }
  static ssize_t read(const UniqueFd& socket) {
    char byte = 0;
    return ::recv(socket.get(), &byte, 1, 0);
  }

  UniqueFd own_, peer_;

 private:
  UniqueFd listener_;
  sockaddr_in address_{};
  socklen_t size_ = sizeof address_;
};

TEST_F(GroupSocketsTest, ShutDownEndsReadingAndThePeerGoesOnWriting) {
  connect();
  GroupSockets::shut_down();
  EXPECT_TRUE(GroupSockets::are_shut_down());
  EXPECT_EQ(read(own_), 0);
  own_.reset();  // Gloo closes what it can't read
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(peer_can_write()) << errno;
}

TEST_F(GroupSocketsTest, TheNextRoundClosesTheConnection) {
  connect();
  GroupSockets::shut_down();
  own_.reset();
  GroupSockets::forget();
  EXPECT_FALSE(GroupSockets::are_shut_down());
  EXPECT_LE(read(peer_), 0);
}

TEST_F(GroupSocketsTest, ConnectionsThatAppearLateAreShutDownToo) {
  GroupSockets::shut_down();
  connect();
  EXPECT_EQ(read(own_), 0);
  EXPECT_TRUE(peer_can_write());
}

}  // namespace
