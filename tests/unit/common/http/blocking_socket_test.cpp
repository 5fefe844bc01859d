// BlockingSocket: connections to local servers.
#include "common/http/blocking_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "common/machine/sockets.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

class BlockingSocketTest : public testing::Test {
 protected:
  static UniqueFd local_socket() {
    return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  // Connects until the server's queue takes no more.
  void fill_queue() {
    for (;;) {
      UniqueFd client = local_socket();
      if (::connect(client.get(), address->get(), address->size) != 0) break;
      clients.push_back(std::move(client));
    }
    ASSERT_EQ(errno, EAGAIN);
  }

  const std::string name = "cpprun/blocking_socket_test/" + std::to_string(::getpid());
  const UniqueFd server = listen_abstract(name, SOCK_STREAM, 1);
  const std::optional<SocketAddress> address = abstract_address(name);
  std::vector<UniqueFd> clients;
};

TEST_F(BlockingSocketTest, FailsWhenTheQueueOfALocalServerStaysFull) {
  fill_queue();
  BlockingSocket socket(local_socket().release(), 50ms);
  const Status connected = socket.connect(address->get(), address->size);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().text, "no answer in time");
}

TEST_F(BlockingSocketTest, ConnectsWhenTheQueueOfALocalServerHasRoomAgain) {
  fill_queue();
  BlockingSocket socket(local_socket().release(), 60s);
  std::thread accepts([this] {
    const UniqueFd accepted(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(accepted.is_open());
  });
  const Status connected = socket.connect(address->get(), address->size);
  accepts.join();
  ASSERT_TRUE(connected) << connected.error().text;
  EXPECT_TRUE(socket.send("x"));
}

}  // namespace
}  // namespace cpprun::test
