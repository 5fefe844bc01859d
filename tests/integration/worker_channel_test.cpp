// The worker channel, both ends in one process: the agent's on a loop of its own thread, the
// worker's as the SDK has it. Real workers are in tests/integration/test_worker_channel.py.
#include "agent/process/worker_channel.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <cstring>
#include <future>
#include <thread>

#include "cpprun/worker/internal/agent_socket.hpp"
#include "tests/support/server_fixture.hpp"

namespace cpprun {
namespace {

using worker::AgentSocket;
using worker::Descriptor;

constexpr int kRank = 3;

class WorkerChannelTest : public testing::Test {
 protected:
  WorkerChannelTest() {
    // In a process namespace whose first process is not its session's, that session has no name.
    if (::getsid(0) <= 0) ::setsid();
    WorkerChannel::Events events;
    events.worker_of = [this](int session) -> std::optional<int> {
      if (is_strange_ || session != ::getsid(0)) return std::nullopt;
      return kRank;
    };
    events.on_ready = [this](int rank) { ready_ += rank == kRank ? 1 : 100; };
    channel_.emplace(loop_, name_, std::move(events));
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~WorkerChannelTest() override {
    loop_.stop();
    thread_.join();
  }

  // Runs `f(WorkerChannel&)` on the loop's thread and gives its result.
  template <class F>
  auto call(F f) {
    std::promise<decltype(f(*channel_))> result;
    boost::asio::post(loop_, [&] { result.set_value(f(*channel_)); });
    return result.get_future().get();
  }
  WorkerChannel::LastWords end_worker() {
    return call([](WorkerChannel& c) { return c.worker_ended(kRank); });
  }
  bool is_alive() { return AgentSocket::connect(name_).page() != nullptr; }

  // A socket that says what it likes.
  Descriptor raw() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data(), name_.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
    Descriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const timeval limit{10, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const auto* whole = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(fd.get(), whole, size), 0);
    return fd;
  }
  static bool say(const Descriptor& fd, const std::string& bytes) {
    return ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
  }
  // The agent hangs up; what it says before is thrown away.
  static bool is_hung_up_on(const Descriptor& fd) {
    char bytes[64];
    ssize_t size = 0;
    while ((size = ::recv(fd.get(), bytes, sizeof bytes, 0)) > 0) continue;
    return size == 0 || errno == ECONNRESET;
  }

  const std::string name_ = "cpprun/test/" + std::to_string(::getpid());
  std::atomic<bool> is_strange_{false};
  std::atomic<int> ready_{0};
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      loop_.get_executor()};
  std::optional<WorkerChannel> channel_;
  std::thread thread_;
};

TEST_F(WorkerChannelTest, BothSidesSeeOnePage) {
  AgentSocket agent = AgentSocket::connect(name_);
  ASSERT_NE(agent.page(), nullptr);
  EXPECT_EQ(agent.page()->bytes, sizeof(WorkerPage));
  EXPECT_EQ(agent.page()->wants_stop, 0u);
  call([](WorkerChannel& c) { return c.ask_to_stop(), 0; });
  EXPECT_EQ(agent.page()->wants_stop, 1u);
  agent.page()->step = 12;
  agent.page()->collectives = 7;
  agent.page()->heartbeat_ns = 1;
  WorkerChannel::LastWords words = end_worker();
  ASSERT_TRUE(words.heartbeat.has_value());
  EXPECT_EQ(words.heartbeat->step, 12);
  EXPECT_EQ(words.heartbeat->collectives, 7);
  EXPECT_EQ(words.report, "");
}

TEST_F(WorkerChannelTest, WhoConnectsAfterTheStopSeesIt) {
  call([](WorkerChannel& c) { return c.ask_to_stop(), 0; });
  EXPECT_EQ(AgentSocket::connect(name_).page()->wants_stop, 1u);
}

TEST_F(WorkerChannelTest, ANewRoundHasNewPages) {
  AgentSocket old = AgentSocket::connect(name_);
  old.page()->step = 5;
  call([](WorkerChannel& c) { return c.ask_to_stop(), c.worker_ended(kRank), 0; });
  call([](WorkerChannel& c) { return c.begin_round(), 0; });
  AgentSocket fresh = AgentSocket::connect(name_);
  EXPECT_EQ(fresh.page()->step, 0);
  EXPECT_EQ(fresh.page()->wants_stop, 0u);
  EXPECT_FALSE(end_worker().heartbeat.has_value());
}

TEST_F(WorkerChannelTest, ThePageCanNotBeMadeShorter) {
  Descriptor fd = raw();
  ASSERT_TRUE(say(fd, channel::encode(channel::Hello{})));
  char bytes[64];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec body{bytes, sizeof bytes};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ASSERT_GT(::recvmsg(fd.get(), &message, MSG_CMSG_CLOEXEC), 0);
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  ASSERT_NE(head, nullptr);
  int memory = -1;
  std::memcpy(&memory, CMSG_DATA(head), sizeof memory);
  Descriptor page(memory);
  EXPECT_LT(::ftruncate(memory, 100), 0);
  EXPECT_LT(::ftruncate(memory, 1 << 20), 0);
}

TEST_F(WorkerChannelTest, AStrangerIsHungUpOn) {
  is_strange_ = true;
  Descriptor fd = raw();
  say(fd, channel::encode(channel::Hello{}));
  EXPECT_TRUE(is_hung_up_on(fd));
  EXPECT_FALSE(is_alive());
  is_strange_ = false;
  EXPECT_TRUE(is_alive());
}

TEST_F(WorkerChannelTest, StrangersAreTurnedAwayABurstAtATime) {
  is_strange_ = true;
  const auto start = std::chrono::steady_clock::now();
  std::vector<Descriptor> knocking;
  for (int i = 0; i < 3 * limits::kChannelBurst + 1; ++i) knocking.push_back(raw());
  for (const Descriptor& fd : knocking) EXPECT_TRUE(is_hung_up_on(fd));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 3 * limits::kChannelPause);
}

TEST_F(WorkerChannelTest, ReadinessCountsOncePerWorker) {
  AgentSocket one = AgentSocket::connect(name_);
  AgentSocket other = AgentSocket::connect(name_);
  for (int i = 0; i < 3; ++i) {
    one.send(channel::Ready{});
    other.send(channel::Ready{});
  }
  EXPECT_TRUE(eventually([&] { return ready_ == 1; }));
  end_worker();
  EXPECT_EQ(ready_, 1);
}

TEST_F(WorkerChannelTest, LastWordsAreReadHoweverLateTheyCame) {
  AgentSocket agent = AgentSocket::connect(name_);
  std::promise<void> may_go;
  boost::asio::post(loop_, [&] { may_go.get_future().wait(); });  // the agent is busy meanwhile
  agent.send(channel::Report{"first"});
  agent.send(channel::Report{"boom"});
  may_go.set_value();
  EXPECT_EQ(end_worker().report, "boom");
  EXPECT_EQ(end_worker().report, "");
}

TEST_F(WorkerChannelTest, WhatIsNoMessageEndsTheConnection) {
  using channel::encode;
  const std::string hello = encode(channel::Hello{});
  const std::string report = encode(channel::Report{std::string(4096, 'x')});
  for (const std::string& bytes :
       {std::string("x"), std::string(60'000, '\0'), report + "x", encode(channel::Ready{}), report,
        encode(channel::Hello{99}), encode(channel::Page{4096})}) {
    Descriptor fd = raw();
    say(fd, bytes);
    EXPECT_TRUE(is_hung_up_on(fd)) << bytes.substr(0, 12);
  }
  Descriptor twice = raw();
  say(twice, hello);
  say(twice, hello);
  EXPECT_TRUE(is_hung_up_on(twice));
  EXPECT_TRUE(is_alive());
}

TEST_F(WorkerChannelTest, WhoSaysTooMuchIsHungUpOn) {
  Descriptor fd = raw();
  say(fd, channel::encode(channel::Hello{}));
  bool is_refused = false;
  for (int i = 0; i < 10'000 && !is_refused; ++i) {
    is_refused = !say(fd, channel::encode(channel::Ready{}));
  }
  EXPECT_TRUE(is_refused || is_hung_up_on(fd));
  EXPECT_TRUE(is_alive());
}

TEST_F(WorkerChannelTest, AWorkerHasAFewConnections) {
  std::vector<Descriptor> open;
  for (size_t i = 0; i < limits::kWorkerConnections; ++i) {
    open.push_back(raw());
    ASSERT_TRUE(say(open.back(), channel::encode(channel::Hello{})));
    char byte = 0;
    ASSERT_EQ(::recv(open.back().get(), &byte, 1, 0), 1);
  }
  Descriptor more = raw();
  EXPECT_TRUE(is_hung_up_on(more));
  open.pop_back();
  EXPECT_TRUE(eventually([&] { return is_alive(); }));
}

TEST_F(WorkerChannelTest, DescriptorsThatAWorkerSendsAreNotKept) {
  Descriptor fd = raw();
  say(fd, channel::encode(channel::Hello{}));
  const std::string ready = channel::encode(channel::Ready{});
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Descriptor read_end(ends[0]);
  iovec body{const_cast<char*>(ready.data()), ready.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &ends[1], sizeof(int));
  ASSERT_GT(::sendmsg(fd.get(), &message, 0), 0);
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // nobody holds the other end any more
}

TEST_F(WorkerChannelTest, HeartbeatsOfManyThreads) {
  AgentSocket agent = AgentSocket::connect(name_);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) agent.page()->collectives.fetch_add(1);
      agent.send(channel::Report{"thread"});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(agent.page()->collectives, 4000);
  EXPECT_EQ(end_worker().report, "thread");
}

TEST(WorkerChannel, ANameThatIsTakenLeavesItClosed) {
  boost::asio::io_context loop;
  const std::string name = "cpprun/test/taken/" + std::to_string(::getpid());
  WorkerChannel first(loop, name, {});
  WorkerChannel second(loop, name, {});
  EXPECT_TRUE(first.is_open());
  EXPECT_FALSE(second.is_open());
}

}  // namespace
}  // namespace cpprun
