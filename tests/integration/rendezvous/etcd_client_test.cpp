// The client with real members of etcd, unreachable members, and hostile servers.
#include "rendezvous/client/etcd/etcd_client.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "common/limits/election.hpp"
#include "rendezvous/server/loop.hpp"
#include "tests/support/hostile_server.hpp"
#include "tests/support/temp_folder.hpp"

extern char** environ;

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using namespace etcd;  // NOLINT: what this test is about

constexpr Duration kLimit = 10s;
const election::Read kRead{"k", "f"};

// A socket that listens and never answers; after its end, a free port.
class Silent {
 public:
  Silent() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), size), 0);
    ::listen(fd_, 16);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
  }
  ~Silent() { ::close(fd_); }
  Silent(const Silent&) = delete;
  Endpoint endpoint() const { return {"127.0.0.1", port_}; }
  int fd() const { return fd_; }

 private:
  int fd_;
  uint16_t port_ = 0;
};

uint16_t free_port() { return Silent().endpoint().port; }

// One member, from `tools/deps.sh --test`, or from PATH.
class Member {
 public:
  Member() : port_(free_port()) {
    const std::string unpacked = "build/etcd-server/usr/bin/etcd";
    program_ = std::filesystem::exists(unpacked) ? unpacked : "etcd";
    start();
  }
  ~Member() { kill(); }

  void start() {
    const std::string client = "http://127.0.0.1:" + std::to_string(port_);
    const std::string peer = "http://127.0.0.1:" + std::to_string(free_port());
    std::vector<std::string> words = {program_,
                                      "--data-dir",
                                      folder_.path() + "/data",
                                      "--log-level",
                                      "fatal",
                                      "--listen-client-urls",
                                      client,
                                      "--advertise-client-urls",
                                      client,
                                      "--listen-peer-urls",
                                      peer,
                                      "--initial-advertise-peer-urls",
                                      peer,
                                      "--initial-cluster",
                                      "default=" + peer};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    is_there_ =
        ::posix_spawnp(&pid_, program_.c_str(), nullptr, nullptr, argv.data(), environ) == 0;
  }
  void kill() {
    if (!std::exchange(is_there_, false)) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool is_there() const { return is_there_; }
  Endpoint endpoint() const { return {"127.0.0.1", port_}; }

 private:
  TempFolder folder_;
  std::string program_;
  uint16_t port_;
  pid_t pid_ = 0;
  bool is_there_ = false;
};

// Sends a request and waits for the answer.
class Asker {
 public:
  explicit Asker(std::vector<Endpoint> members) : Asker(ClientOptions{std::move(members)}) {}
  explicit Asker(ClientOptions options)
      : client_(std::make_unique<EtcdClient>(loop_.context(), std::move(options))) {
    loop_.hold();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Asker() {
    loop_.post([this] {
      client_.reset();
      loop_.release();
    });
    thread_.join();
  }
  Asker(const Asker&) = delete;

  Result<std::string> ask(const election::Request& request, Duration limit = kLimit) {
    std::promise<Result<std::string>> got;
    loop_.post([&] {
      client_->ask(request_of(request, ""), limit,
                   [&](Result<std::string> result) { got.set_value(std::move(result)); });
    });
    return got.get_future().get();
  }
  // Fails the test if the response is of another type.
  template <class Response>
  Response get(const election::Request& request) {
    const election::Response response = response_of(request, "", ask(request));
    EXPECT_TRUE(std::holds_alternative<Response>(response));
    const auto* wanted = std::get_if<Response>(&response);
    return wanted != nullptr ? *wanted : Response{};
  }
  std::string own_address() const { return client_->own_address(); }

 private:
  ServerLoop loop_;
  std::unique_ptr<EtcdClient> client_;
  std::thread thread_;
};

class EtcdClientTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!member.is_there()) GTEST_SKIP() << "no etcd; tools/deps.sh --test fetches it";
    Asker asker({member.endpoint()});
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!asker.ask(kRead, 1s).ok()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "etcd does not come up";
    }
  }

  Member member;
};

TEST_F(EtcdClientTest, OneCandidateWinsAndTheKeyExpiresWithItsLease) {
  Asker asker({member.endpoint()});
  const auto lease = asker.get<election::Granted>(election::Grant{30});
  EXPECT_GE(lease.ttl_s, 30);
  const election::Campaign campaign{"k", "mine", "f", lease.lease};
  const auto won = asker.get<election::ReadResult>(campaign);
  EXPECT_TRUE(won.is_done);
  ASSERT_TRUE(won.leader.has_value());
  EXPECT_EQ(won.leader->create_revision, won.revision);
  EXPECT_EQ(won.leader->lease, lease.lease);
  const auto lost = asker.get<election::ReadResult>(campaign);
  EXPECT_FALSE(lost.is_done);
  ASSERT_TRUE(lost.leader.has_value());
  EXPECT_EQ(lost.leader->value, "mine");
  const election::Write guarded{"k", "f", std::string("\0facts", 6), won.revision, 0};
  EXPECT_TRUE(asker.get<election::ReadResult>(guarded).is_done);
  EXPECT_FALSE(asker.get<election::ReadResult>(guarded).is_done) << "it was written meanwhile";
  const election::KeepAlive keep{lease.lease};
  EXPECT_GE(asker.get<election::KeepAliveResult>(keep).ttl_s, 29);
  EXPECT_TRUE(asker.ask(election::Revoke{lease.lease}).ok());
  EXPECT_EQ(asker.get<election::KeepAliveResult>(keep).ttl_s, 0);
  const auto after = asker.get<election::ReadResult>(kRead);
  EXPECT_FALSE(after.leader.has_value());
  ASSERT_TRUE(after.facts.has_value());
  EXPECT_EQ(after.facts->value, std::string("\0facts", 6));
  EXPECT_EQ(asker.own_address(), "127.0.0.1");
}

TEST_F(EtcdClientTest, AFailedCompareIsNoError) {
  Asker asker({member.endpoint()});
  const Result<std::string> none = asker.ask(election::Revoke{4711});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::Refused);
  EXPECT_NE(none.error().text.find("lease not found"), std::string::npos) << none.error().text;
}

TEST_F(EtcdClientTest, SkipsUnreachableEndpoints) {
  Asker asker({{"127.0.0.1", free_port()}, {"127.0.0.1", free_port()}, member.endpoint()});
  EXPECT_TRUE(asker.ask(kRead).ok());
}

TEST_F(EtcdClientTest, ASilentEndpointCostsOneRequest) {
  const Silent silent;
  Asker asker({silent.endpoint(), member.endpoint()});
  const auto begun = std::chrono::steady_clock::now();
  const Result<std::string> none = asker.ask(kRead, 300ms);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::Timeout) << "it may have been carried out";
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 300ms);
  EXPECT_TRUE(asker.ask(kRead).ok());
}

TEST_F(EtcdClientTest, FindsARestartedMember) {
  Asker asker({member.endpoint()});
  const election::Write write{"k", "f", "v", 0, 0};
  ASSERT_TRUE(asker.get<election::ReadResult>(write).is_done);
  member.kill();
  const Result<std::string> none = asker.ask(kRead);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::Network);
  EXPECT_NE(none.error().text.find("Connection refused"), std::string::npos) << none.error().text;
  member.start();
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!asker.ask(kRead, 1s).ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  }
  const auto kept = asker.get<election::ReadResult>(kRead);
  ASSERT_TRUE(kept.facts.has_value());
  EXPECT_EQ(kept.facts->value, "v");
}

// Answers one request of each connection; delays the first answer, to a token request.
class SlowLogin {
 public:
  SlowLogin() : thread_([this] { serve(); }) {}
  ~SlowLogin() { thread_.join(); }
  SlowLogin(const SlowLogin&) = delete;
  Endpoint endpoint() const { return door_.endpoint(); }
  void go_on() { may_answer_.set_value(); }

 private:
  void serve() {
    answer(R"({"token":"t.1"})", [this] { may_answer_.get_future().wait(); });
    answer(R"({"header":{"revision":"7"}})", [] {});
  }

  template <class Wait>
  void answer(const std::string& body, Wait wait) {
    const int fd = ::accept(door_.fd(), nullptr, nullptr);
    std::string request;
    std::array<char, 4096> room{};
    while (!request.ends_with('}')) {
      const ssize_t size = ::recv(fd, room.data(), room.size(), 0);
      if (size <= 0) break;
      request.append(room.data(), static_cast<size_t>(size));
    }
    wait();
    const std::string reply =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    EXPECT_EQ(::send(fd, reply.data(), reply.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(reply.size()));
    ::close(fd);
  }

  Silent door_;
  std::promise<void> may_answer_;
  std::thread thread_;
};

TEST(HostileEtcd, LoginMayTakeLongerThanTheRequestThatNeedsIt) {
  SlowLogin member;
  Asker asker(ClientOptions{{member.endpoint()}, "user", "password"});
  const election::Request question = kRead;
  EXPECT_FALSE(asker.ask(question, 100ms).ok());
  const Result<std::string> meanwhile = asker.ask(question, kLimit);
  ASSERT_FALSE(meanwhile.ok());
  EXPECT_NE(meanwhile.error().text.find("another request logs in"), std::string::npos)
      << meanwhile.error().text;
  member.go_on();
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!asker.ask(question, kLimit).ok()) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST(HostileEtcd, ANonHttpPeerIsAnImmediateError) {
  HostileServer foreign({});
  const size_t colon = foreign.address().rfind(':');
  const auto port = static_cast<uint16_t>(std::stoi(foreign.address().substr(colon + 1)));
  Asker asker({{"127.0.0.1", port}});
  const Result<std::string> none = asker.ask(kRead);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::Network);
}

TEST(HostileEtcd, RefusesExcessRequestsAndAnswersAll) {
  const Silent silent;
  ServerLoop loop;
  size_t answered = 0;
  auto client = std::make_unique<EtcdClient>(loop.context(), ClientOptions{{silent.endpoint()}});
  const auto count = [&](const Result<std::string>& result) {
    EXPECT_FALSE(result.ok());
    if (++answered < limits::kEtcdCalls + 5) return;
    client->ask(request_of(election::KeepAlive{1}, ""), 200ms,
                [&](const Result<std::string>&) { ++answered; });
    client.reset();
  };
  for (size_t i = 0; i < limits::kEtcdCalls + 5; ++i) {
    client->ask(request_of(election::KeepAlive{1}, ""), 200ms, count);
  }
  loop.run();
  EXPECT_EQ(answered, limits::kEtcdCalls + 5) << "no callback comes after the client is destroyed";
}

}  // namespace
}  // namespace cpprun::test
