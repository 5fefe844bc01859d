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

// A socket that listens and never answers; after its end, a free port.
class Silent {
 public:
  Silent() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ::bind(fd_, reinterpret_cast<sockaddr*>(&at), size);
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

  Result<std::string> ask(const Request& request, Duration limit = kLimit) {
    std::promise<Result<std::string>> got;
    loop_.post([&] {
      client_->ask(request, limit,
                   [&](Result<std::string> result) { got.set_value(std::move(result)); });
    });
    return got.get_future().get();
  }
  TxnAnswer txn(const Txn& asked) {
    const Result<std::string> body = ask(asked);
    EXPECT_TRUE(body.ok()) << body.error().text;
    const Result<TxnAnswer> answer = parse_txn(body.ok() ? *body : "");
    EXPECT_TRUE(answer.ok());
    return answer.ok() ? *answer : TxnAnswer{};
  }
  LeaseAnswer lease(const Request& request) {
    const Result<LeaseAnswer> answer = parse_lease(*ask(request));
    EXPECT_TRUE(answer.ok());
    return answer.ok() ? *answer : LeaseAnswer{};
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
    while (!asker.ask(Txn{{}, {Get{"x"}}, {}}, 1s).ok()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "etcd does not come up";
    }
  }

  Member member;
};

TEST_F(EtcdClientTest, OneCandidateWinsAndTheKeyExpiresWithItsLease) {
  Asker asker({member.endpoint()});
  const LeaseAnswer lease = asker.lease(LeaseGrant{30s});
  EXPECT_GE(lease.ttl, 30s);
  const Txn campaign{
      {{Compare::What::Created, "k", 0}}, {Put{"k", "mine", lease.lease}, Get{"k"}}, {Get{"k"}}};
  const TxnAnswer won = asker.txn(campaign);
  EXPECT_TRUE(won.held);
  ASSERT_NE(won.find("k"), nullptr);
  EXPECT_EQ(won.find("k")->create_revision, won.revision);
  EXPECT_EQ(won.find("k")->lease, lease.lease);
  const TxnAnswer lost = asker.txn(campaign);
  EXPECT_FALSE(lost.held);
  EXPECT_EQ(lost.find("k")->value, "mine");
  const Txn guarded{{{Compare::What::Created, "k", won.revision}, {Compare::What::Written, "f", 0}},
                    {Put{"f", std::string("\0facts", 6)}},
                    {}};
  EXPECT_TRUE(asker.txn(guarded).held);
  EXPECT_FALSE(asker.txn(guarded).held) << "it was written meanwhile";
  EXPECT_GE(asker.lease(LeaseKeepAlive{lease.lease}).ttl, 29s);
  EXPECT_TRUE(asker.ask(LeaseRevoke{lease.lease}).ok());
  EXPECT_EQ(asker.lease(LeaseKeepAlive{lease.lease}).ttl, Duration{});
  const TxnAnswer after = asker.txn({{}, {Get{"k"}, Get{"f"}}, {}});
  EXPECT_EQ(after.find("k"), nullptr);
  EXPECT_EQ(after.find("f")->value, std::string("\0facts", 6));
  EXPECT_EQ(asker.own_address(), "127.0.0.1");
}

TEST_F(EtcdClientTest, AFailedCompareIsNoError) {
  Asker asker({member.endpoint()});
  const Result<std::string> none = asker.ask(LeaseRevoke{4711});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::Refused);
  EXPECT_NE(none.error().text.find("lease not found"), std::string::npos) << none.error().text;
}

TEST_F(EtcdClientTest, SkipsUnreachableEndpoints) {
  Asker asker({{"127.0.0.1", free_port()}, {"127.0.0.1", free_port()}, member.endpoint()});
  EXPECT_TRUE(asker.ask(Txn{{}, {Get{"x"}}, {}}).ok());
}

TEST_F(EtcdClientTest, ASilentEndpointCostsOneRequest) {
  const Silent silent;
  Asker asker({silent.endpoint(), member.endpoint()});
  const auto begun = std::chrono::steady_clock::now();
  const Result<std::string> none = asker.ask(Txn{{}, {Get{"x"}}, {}}, 300ms);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::Timeout) << "it may have been carried out";
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 300ms);
  EXPECT_TRUE(asker.ask(Txn{{}, {Get{"x"}}, {}}).ok());
}

TEST_F(EtcdClientTest, FindsARestartedMember) {
  Asker asker({member.endpoint()});
  ASSERT_TRUE(asker.ask(Txn{{}, {Put{"k", "v"}}, {}}).ok());
  member.kill();
  const Result<std::string> none = asker.ask(Txn{{}, {Get{"k"}}, {}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::Network);
  EXPECT_NE(none.error().text.find("Connection refused"), std::string::npos) << none.error().text;
  member.start();
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!asker.ask(Txn{{}, {Get{"k"}}, {}}, 1s).ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  }
  EXPECT_EQ(asker.txn({{}, {Get{"k"}}, {}}).find("k")->value, "v");
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
  const Request question = Txn{{}, {Get{"x"}}, {}};
  EXPECT_FALSE(asker.ask(question, 100ms).ok());
  const Result<std::string> meanwhile = asker.ask(question, kLimit);
  ASSERT_FALSE(meanwhile.ok());
  EXPECT_NE(meanwhile.error().text.find("logging in"), std::string::npos) << meanwhile.error().text;
  member.go_on();
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!asker.ask(question, kLimit).ok()) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST(HostileEtcd, ANonHttpPeerIsAnImmediateError) {
  HostileServer stranger({});
  const size_t colon = stranger.address().rfind(':');
  const auto port = static_cast<uint16_t>(std::stoi(stranger.address().substr(colon + 1)));
  Asker asker({{"127.0.0.1", port}});
  const Result<std::string> none = asker.ask(Txn{{}, {Get{"x"}}, {}});
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
    client->ask(LeaseKeepAlive{1}, 200ms, [&](const Result<std::string>&) { ++answered; });
    client.reset();
  };
  for (size_t i = 0; i < limits::kEtcdCalls + 5; ++i) {
    client->ask(LeaseKeepAlive{1}, 200ms, count);
  }
  loop.run();
  EXPECT_EQ(answered, limits::kEtcdCalls + 5) << "no callback comes after the client is destroyed";
}

}  // namespace
}  // namespace cpprun::test
