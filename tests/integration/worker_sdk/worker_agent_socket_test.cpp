// The worker's end of the channel with sockets that are no agent. With a real agent:
// worker_channel_test.cpp.
#include "cpprun/worker/internal/agent_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include "common/limits/channel.hpp"

namespace cpprun::worker {
namespace {

// An agent for one client that sends a given answer, with or without a descriptor.
class FakeAgent {
 public:
  FakeAgent(std::string answer, UniqueFd beside)
      : answer_(std::move(answer)), beside_(std::move(beside)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name().data(), name().size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name().size());
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto* whole = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), whole, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeAgent() { thread_.join(); }
  static const std::string& name() {
    static const std::string fixed = "cpprun/test/fake/" + std::to_string(::getpid());
    return fixed;
  }

 private:
  void serve() {
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char hello[64];
    if (::recv(client.get(), hello, sizeof hello, 0) <= 0) return;
    iovec body{answer_.data(), answer_.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &body;
    message.msg_iovlen = 1;
    if (beside_.is_open()) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      const int descriptor = beside_.get();
      std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    }
    if (!answer_.empty()) {
      EXPECT_GT(::sendmsg(client.get(), &message, MSG_NOSIGNAL), 0);
      return;
    }
    while (::recv(client.get(), hello, sizeof hello, 0) > 0) continue;
  }

  std::string answer_;
  UniqueFd beside_;
  UniqueFd listener_;
  std::thread thread_;
};

UniqueFd memory(off_t size, bool is_sealed, const WorkerPage* content = nullptr) {
  UniqueFd made(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(made.get(), size), 0);
  if (content != nullptr) {
    EXPECT_EQ(::pwrite(made.get(), content, sizeof *content, 0), ssize_t{sizeof *content});
  }
  const int seals = is_sealed ? F_SEAL_SHRINK : 0;
  EXPECT_EQ(::fcntl(made.get(), F_ADD_SEALS, seals), 0);
  return made;
}

AgentSocket met(std::string answer, UniqueFd beside) {
  FakeAgent agent(std::move(answer), std::move(beside));
  return AgentSocket::connect(FakeAgent::name());
}

TEST(WorkerAgentSocket, RejectsAForeignAgentSocket) {
  const std::string page = channel::encode(channel::Page{sizeof(WorkerPage)});
  const WorkerPage good;
  WorkerPage strange;
  strange.magic = 7;
  EXPECT_NE(met(page, memory(4096, true, &good)).page(), nullptr);
  EXPECT_EQ(met(page, memory(4096, true, &strange)).page(), nullptr);
  EXPECT_EQ(met(page, memory(4096, false, &good)).page(), nullptr) << "it might shrink";
  EXPECT_EQ(met(page, memory(100, true)).page(), nullptr);
  EXPECT_EQ(met(page, UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC))).page(), nullptr);
  EXPECT_EQ(met(page, UniqueFd()).page(), nullptr);
  EXPECT_EQ(met("garbage", memory(4096, true, &good)).page(), nullptr);
  EXPECT_EQ(met(channel::encode(channel::Ready{}), memory(4096, true, &good)).page(), nullptr);
}

TEST(WorkerAgentSocket, GivesUpOnASilentAgent) { EXPECT_EQ(met("", UniqueFd()).page(), nullptr); }

TEST(WorkerAgentSocket, ReportsAMissingAgent) {
  EXPECT_EQ(AgentSocket::connect("").page(), nullptr);
  EXPECT_EQ(AgentSocket::connect("cpprun/no/such/agent").page(), nullptr);
  EXPECT_EQ(AgentSocket::connect(std::string(500, 'x')).page(), nullptr);
}

}  // namespace
}  // namespace cpprun::worker
