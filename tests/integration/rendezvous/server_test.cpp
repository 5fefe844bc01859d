// The rendezvous server on real sockets. The server runs on its own thread; tests are blocking
// clients with deadlines on every read.
#include "rendezvous/server/server.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <new>
#include <random>

#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"
#include "tests/support/server_fixture.hpp"

namespace cpprun {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using tcpstore::Op;

constexpr std::string_view kHello = "\x00\xCE\xF7\x85\x3C"sv;

std::string ping(uint32_t nonce) {
  std::string out;
  tcpstore::put_ping(out, nonce);
  return out;
}

std::string get(std::string_view key) {
  std::string out;
  tcpstore::put_key(out, Op::Get, key);
  return out;
}

std::string set(std::string_view key, std::string_view value) {
  std::string out;
  tcpstore::put_write(out, Op::Set, key, value);
  return out;
}

std::string bytes_reply(std::string_view value) {
  std::string out;
  tcpstore::reply_bytes(out, value);
  return out;
}

// The server still answers a well-behaved client.
void expect_alive(const RunningServer& server) {
  Client client(server.port());
  client.send(std::string(kHello) + ping(4711));
  EXPECT_EQ(client.read(4), ping(4711).substr(1));
}

constexpr size_t kMemory = 128 << 20;

class ServerTest : public testing::Test {
 protected:
  explicit ServerTest(const ServerOptions& options = small_limits()) : server_(options) {}

  static ServerOptions small_limits() {
    ServerOptions options;
    options.silent_peer = options.stalled_command = kDeadline;
    options.outbox_bytes = 1 << 20;
    options.memory_bytes = kMemory;
    return options;
  }

  RunningServer server_;
};

class ServerDeadlinesTest : public ServerTest {
 protected:
  ServerDeadlinesTest() : ServerTest(short_deadlines()) {}

  static ServerOptions short_deadlines() {
    ServerOptions options = small_limits();
    options.silent_peer = options.stalled_command = 1s;
    return options;
  }
};

TEST_F(ServerTest, AcceptsHelloInSingleBytes) {
  Client client(server_.port());
  for (char byte : std::string(kHello) + ping(1)) client.send({&byte, 1});
  EXPECT_EQ(client.read(4), "\x01\0\0\0"sv);
}

TEST_F(ServerTest, AnswersManyCommandsOfOneSegmentInOrder) {
  Client client(server_.port());
  std::string out(kHello);
  std::string want;
  for (uint32_t i = 0; i < 5000; ++i) {
    out += set("/k", std::to_string(i)) + get("/k") + ping(i);
    want += bytes_reply(std::to_string(i)) + ping(i).substr(1);
  }
  client.send(out);
  EXPECT_EQ(client.read(want.size()), want);
}

TEST_F(ServerTest, ClosesOnAWrongMagic) {
  Client client(server_.port());
  client.send("\x00\xCE\xF7\x85\x3D"sv);
  EXPECT_TRUE(client.is_ended());
  expect_alive(server_);
}

TEST_F(ServerTest, RandomBytesEndOnlyTheirConnection) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    Client client(server_.port());
    std::string junk(random() % 300 + 1, '\0');
    for (char& c : junk) c = static_cast<char>(random());
    if (i % 2) junk = std::string(kHello) + junk;
    client.send(junk);
  }
  expect_alive(server_);
}

TEST_F(ServerTest, DoesNotExecuteATruncatedCommand) {
  std::string whole = std::string(kHello) + set("/cut", "value");
  for (size_t cut : {6u, 12u, 20u}) {
    Client client(server_.port());
    client.send(std::string_view(whole).substr(0, cut));
    client.finish();
    EXPECT_TRUE(client.is_ended());
  }
  Client client(server_.port());
  client.send(std::string(kHello) + get("/cut"));
  EXPECT_EQ(client.read(8), bytes_reply(""));
}

TEST_F(ServerTest, ClosesOnOversizedLengths) {
  Client client(server_.port());
  client.send(std::string(kHello) + "\x03\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F");
  EXPECT_TRUE(client.is_ended());
}

TEST_F(ServerTest, AnAnnouncedGigabyteAllocatesNothingInAdvance) {
  long before = resident_kib();
  std::vector<Client> clients;
  std::string announced = std::string(kHello) + "\x01" + bytes_reply("/k");
  announced += "\0\0\0\x40\0\0\0\0"sv;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(server_.port());
    clients.back().send(announced);
  }
  expect_alive(server_);
  EXPECT_LT(resident_kib() - before, 16 * 1024);
}

TEST_F(ServerTest, LargeValuesGoBothWays) {
  std::string value(40 << 20, 'v');
  value.back() = 'e';
  const std::string request = std::string(kHello) + set("/big", value) + get("/big");
  Client client(server_.port());
  client.send(request);
  EXPECT_TRUE(client.read(8 + value.size()) == bytes_reply(value));
}

TEST_F(ServerTest, AnotherConnectionWakesAWaiter) {
  Client waiter(server_.port());
  std::string wait;
  std::string_view key = "/key";
  tcpstore::put_keys(wait, Op::Wait, {&key, 1});
  waiter.send(std::string(kHello) + wait + ping(1));
  EXPECT_EQ(waiter.read(4), ping(1).substr(1));  // so the wait is registered
  Client setter(server_.port());
  setter.send(std::string(kHello) + set(key, "x"));
  EXPECT_EQ(waiter.read(1), "\0"sv);
}

TEST_F(ServerTest, AddToTextClosesTheConnectionAndKeepsTheValue) {
  Client client(server_.port());
  std::string add;
  tcpstore::put_number(add, Op::Add, "/t", 1);
  client.send(std::string(kHello) + set("/t", "text") + get("/t") + add);
  EXPECT_EQ(client.read(12), bytes_reply("text"));
  EXPECT_TRUE(client.is_ended());
}

TEST_F(ServerDeadlinesTest, DropsASlowloris) {
  for (std::string_view start : {"\x00"sv, "GET / HT"sv, "CP"sv, "\x05"sv}) {
    Client client(server_.port());
    client.send(start);
    EXPECT_TRUE(client.is_ended()) << start;
  }
  expect_alive(server_);
}

TEST_F(ServerDeadlinesTest, DropsAThousandSilentConnectionsWithoutDisturbance) {
  std::vector<Client> silent;
  for (int i = 0; i < 1000; ++i) silent.emplace_back(server_.port());
  expect_alive(server_);
  for (Client& client : silent) EXPECT_TRUE(client.is_ended());
}

TEST_F(ServerDeadlinesTest, KeepsAnIdleClientAfterItsHandshake) {
  Client client(server_.port());
  client.send(kHello);
  Client silent(server_.port());
  EXPECT_TRUE(silent.is_ended());  // the handshake timeout has passed, so it has passed for this
                                   // connection too
  client.send(ping(5));
  EXPECT_EQ(client.read(4), ping(5).substr(1));
}

TEST_F(ServerDeadlinesTest, TheSecondConnectionOfATorch20ClientMayStaySilent) {
  Client first(server_.port());
  std::string add;
  tcpstore::put_number(add, Op::Add, "init/", 1, tcpstore::Dialect::Legacy20);
  first.send(add);
  EXPECT_EQ(first.read(8), "\x01\0\0\0\0\0\0\0"sv);
  Client second(server_.port());
  Client unwelcome(server_.port());
  EXPECT_TRUE(unwelcome.is_ended());
  EXPECT_FALSE(second.has_ended_by_now());
}

TEST_F(ServerTest, APeerThatDoesNotReadWaitsWithItsCommands) {
  constexpr int kGets = 20'000;
  Client deaf(server_.port());
  const std::string value(8'000, 'x');  // below Value::kSharedFrom, so each reply is a copy
  deaf.send(std::string(kHello) + set("/k", value));
  const long before = resident_kib();
  std::string gets;
  for (int i = 0; i < kGets; ++i) gets += get("/k");
  deaf.send(gets);
  expect_alive(server_);
  expect_alive(server_);
  EXPECT_LT(resident_kib() - before, 32 * 1024) << "the replies have 160 MB";
  const std::string one = bytes_reply(value);
  for (int i = 0; i < kGets; ++i) ASSERT_EQ(deaf.read(one.size()), one) << i;
}

struct Silent : Session {
  size_t on_bytes(std::span<const uint8_t> bytes) override { return bytes.size(); }
  void on_closed(CloseKind) override {}
};

// The messages answer no command of this peer, so they cannot wait.
TEST_F(ServerTest, DropsAPeerThatReadsNoMessages) {
  Connection* connection = nullptr;
  ServerHooks hooks;
  hooks.make_control_session = [&](Connection& made) {
    connection = &made;
    return std::make_unique<Silent>();
  };
  RunningServer server(small_limits(), std::move(hooks));
  Client deaf(server.port());
  deaf.send("CPRN");
  ASSERT_TRUE(
      eventually([&] { return server.call([&](Server&) { return connection != nullptr; }); }));
  const std::string message(60'000, 'x');
  for (int i = 0; i < 400; ++i) {
    const bool is_open = server.call([&](Server& s) {
      if (s.connections() == 1) connection->send(message);
      return s.connections() == 1;
    });
    if (!is_open) break;
  }
  EXPECT_TRUE(deaf.is_ended());
  expect_alive(server);
}

TEST_F(ServerTest, ClosesTheClientThatExceedsTheMemoryBudget) {
  const std::string large =
      std::string(kHello) + set("/kept", std::string(60 << 20, 'x')) + ping(1);
  Client kept(server_.port());
  kept.send(large);
  EXPECT_EQ(kept.read(4), ping(1).substr(1));
  Client refused(server_.port());
  refused.send(kHello);
  for (int i = 0; i < 8; ++i) {
    refused.send(set("/" + std::to_string(i), std::string(10 << 20, 'x')));
  }
  EXPECT_TRUE(refused.is_ended());
  std::string remove;
  tcpstore::put_key(remove, Op::DeleteKey, "/kept");
  kept.send(remove + set("/other", std::string(50 << 20, 'x')) + ping(2));
  EXPECT_EQ(kept.read(12).substr(8), ping(2).substr(1)) << "the deleted value gave memory back";
}

TEST_F(ServerTest, CountsWhatArrivedOfUnfinishedCommands) {
  ServerOptions options;
  options.memory_bytes = kMemory;
  RunningServer server(options);
  const std::string command = set("/k", std::string(80 << 20, 'x'));
  const std::string_view half(command.data(), 70 << 20);
  Client first(server.port());
  first.send(kHello);
  first.send(half);
  Client second(server.port());
  second.send(kHello);
  second.send(half);
  EXPECT_TRUE(second.is_ended());
  expect_alive(server);
  EXPECT_FALSE(first.has_ended_by_now());
}

TEST_F(ServerDeadlinesTest, ClosesACommandThatDoesNotGoOn) {
  Client stalled(server_.port());
  Client idle(server_.port());
  Client slow(server_.port());
  const std::string whole = set("/k", std::string(1 << 20, 'x'));
  idle.send(std::string(kHello) + set("/i", "value"));
  slow.send(std::string(kHello) + whole.substr(0, 20));
  stalled.send(std::string(kHello) + whole.substr(0, 20));
  std::string_view left = std::string_view(whole).substr(20);
  while (!stalled.has_ended_by_now() && left.size() > 1) {
    slow.send(left.substr(0, 1));
    left.remove_prefix(1);
    expect_alive(server_);  // takes a moment
  }
  EXPECT_TRUE(stalled.is_ended());
  slow.send(left);
  slow.send(ping(1));
  EXPECT_EQ(slow.read(4), ping(1).substr(1));
  idle.send(ping(2));
  EXPECT_EQ(idle.read(4), ping(2).substr(1));
}

struct Throwing : Session {
  explicit Throwing(bool& is_closed) : has_closed(is_closed) {}
  size_t on_bytes(std::span<const uint8_t>) override { throw std::bad_alloc(); }
  void on_closed(CloseKind) override { has_closed = true; }
  bool& has_closed;
};

TEST_F(ServerTest, OutOfMemoryEndsOnlyTheConnectionThatNeedsIt) {
  bool has_closed = false;
  ServerHooks hooks;
  hooks.make_control_session = [&](Connection&) { return std::make_unique<Throwing>(has_closed); };
  RunningServer server(small_limits(), std::move(hooks));
  Client client(server.port());
  client.send("CPRN");
  EXPECT_TRUE(client.is_ended());
  EXPECT_TRUE(server.call([&](Server&) { return has_closed; }));
  expect_alive(server);
}

TEST_F(ServerTest, APeerThatReadsGetsEveryAnswer) {
  Client client(server_.port());
  std::string value(300'000, 'x');
  std::string out = std::string(kHello) + set("/k", value);
  for (int i = 0; i < 6; ++i) out += get("/k");
  client.send(out);
  std::string got = client.read(6 * (8 + value.size()));
  EXPECT_EQ(got.size(), 6 * (8 + value.size()));
}

TEST_F(ServerTest, AResetPeerDoesNoHarm) {
  Client client(server_.port());
  client.send(std::string(kHello) + get("/k"));
  client.reset();
  expect_alive(server_);
}

TEST_F(ServerTest, HttpPages) {
  EXPECT_EQ(http(server_.port(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").substr(0, 15),
            "HTTP/1.1 200 OK");
  EXPECT_NE(http(server_.port(), "GET /status?x HTTP/1.0\r\n\r\n").find("{\"a\": 1}"),
            std::string::npos);
  EXPECT_NE(http(server_.port(), "GET /metrics HTTP/1.1\r\n\r\n").find("cpprun_connections"),
            std::string::npos);
  EXPECT_EQ(http(server_.port(), "GET /no HTTP/1.1\r\n\r\n").substr(9, 3), "404");
  EXPECT_EQ(
      http(server_.port(), "POST /healthz HTTP/1.1\r\nContent-Length: 2\r\n\r\nxx").substr(9, 3),
      "405");
  EXPECT_EQ(http(server_.port(), "GET nonsense\r\n\r\n").substr(9, 3), "400");
  std::string endless = "GET / HTTP/1.1\r\nA: ";
  endless.append(20'000, 'a');
  EXPECT_EQ(http(server_.port(), endless).substr(9, 3), "431");
}

TEST_F(ServerTest, ClosesControlConnectionsWithoutAHandler) {
  Client client(server_.port());
  client.send("CPRN\0\0\0\0"sv);
  EXPECT_TRUE(client.is_ended());
}

TEST_F(ServerTest, ReportsATakenPortAsTorchDoes) {
  RunningServer other;
  Result<uint16_t> second = other.call([&](Server& server) {
    return server.listen({"127.0.0.1", server_.port()});
  });
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().text.find(
                "The server socket has failed to listen on any local network address"),
            0u);
  EXPECT_NE(second.error().text.find(std::to_string(server_.port())), std::string::npos);
}

TEST_F(ServerTest, ListensOnAllInterfacesAndOnLocalhost) {
  for (const char* host : {"", "::", "0.0.0.0", "localhost"}) {
    Result<uint16_t> port = server_.call([&](Server& s) { return s.listen({host, 0}); });
    ASSERT_TRUE(port.ok()) << host << port.error().text;
    Client client(*port);
    client.send(std::string(kHello) + ping(1));
    EXPECT_EQ(client.read(4), ping(1).substr(1)) << host;
  }
}

TEST_F(ServerTest, ARoundsStoreIsSeparateAndClosesWithItsPort) {
  auto store = std::make_shared<Store>();
  Result<uint16_t> port =
      server_.call([&](Server& s) { return s.open_store_listener("127.0.0.1", 0, store); });
  ASSERT_TRUE(port.ok());
  Client main(server_.port());
  main.send(std::string(kHello) + set("/k", "main"));
  Client round(*port);
  round.send(std::string(kHello) + get("/k"));
  EXPECT_EQ(round.read(8), bytes_reply(""));
  EXPECT_EQ(http(*port, "GET /healthz HTTP/1.1\r\n\r\n"), "") << "stores only";
  server_.call([&](Server& s) {
    s.close_store_listener(*port);
    return 0;
  });
  EXPECT_TRUE(round.is_ended());
  EXPECT_TRUE(Client(*port, Client::MayFail{}).is_ended());
  main.send(ping(3));
  EXPECT_EQ(main.read(4), ping(3).substr(1));
}

TEST_F(ServerTest, DistinguishesFinFromReset) {
  struct Probe : Session {
    explicit Probe(std::vector<CloseKind>& kinds) : ends(kinds) {}
    size_t on_bytes(std::span<const uint8_t> bytes) override { return bytes.size(); }
    void on_closed(CloseKind kind) override { ends.push_back(kind); }
    std::vector<CloseKind>& ends;
  };
  std::vector<CloseKind> ends;
  ServerHooks hooks;
  std::vector<Connection*> open;
  hooks.make_control_session = [&](Connection& connection) {
    connection.send("welcome");
    open.push_back(&connection);
    return std::make_unique<Probe>(ends);
  };
  RunningServer server(small_limits(), std::move(hooks));
  auto count = [&] { return server.call([&](Server&) { return ends.size(); }); };
  Client polite(server.port());
  polite.send("CPRN");
  EXPECT_EQ(polite.read(7), "welcome");
  polite.finish();
  EXPECT_TRUE(polite.is_ended());
  EXPECT_TRUE(eventually([&] { return count() == 1; }));
  Client rude(server.port());
  rude.send("CPRN");
  EXPECT_EQ(rude.read(7), "welcome");
  rude.reset();
  EXPECT_TRUE(eventually([&] { return count() == 2; }));
  Client ours(server.port());
  ours.send("CPRN");
  EXPECT_EQ(ours.read(7), "welcome");
  server.call([&](Server&) {
    open.back()->send("bye");
    open.back()->close();
    return 0;
  });
  EXPECT_EQ(ours.read(3), "bye");
  EXPECT_TRUE(ours.is_ended());
  EXPECT_TRUE(eventually([&] { return count() == 3; }));
  std::vector<CloseKind> want = {CloseKind::Fin, CloseKind::Reset, CloseKind::ByUs};
  EXPECT_EQ(server.call([&](Server&) { return ends; }), want);
}

TEST_F(ServerTest, SetsOptionsOfItsSockets) {
  Client client(server_.port());
  client.send(std::string(kHello) + ping(1));
  client.read(4);
  for (const SocketFacts& facts : sockets_of_port(server_.port())) {
    EXPECT_TRUE(facts.is_close_on_exec);
    EXPECT_TRUE(facts.is_no_delay);
    EXPECT_TRUE(facts.detects_dead_peer);
  }
  EXPECT_EQ(sockets_of_port(server_.port()).size(), 2u) << "the listener and one connection";
}

TEST_F(ServerTest, BeginsALimitedNumberOfTlsHandshakes) {
  TlsCredentials credentials;
  credentials.secret = *JobSecret::copy_of(std::string(32, 's'));
  ServerOptions options;
  options.silent_peer = kDeadline;
  options.tls = *JobTls::load(std::move(credentials), "job");
  options.tls_handshakes = 2;
  RunningServer server(options);
  const auto stream = options.tls->connect(TlsRole::Coordinator);
  stream->shake_hands();
  const std::string client_hello = stream->take_output();
  const auto is_answered = [&](const Client& client) {
    client.send(client_hello);
    return client.read(1).size() == 1;
  };
  Client first(server.port());
  EXPECT_TRUE(is_answered(first));
  const Client second(server.port());
  EXPECT_TRUE(is_answered(second));
  EXPECT_FALSE(is_answered(Client(server.port())));
  EXPECT_FALSE(first.has_ended_by_now());
  first.reset();
  EXPECT_TRUE(eventually([&] { return is_answered(Client(server.port())); }));
}

TEST_F(ServerTest, ServesOpenConnectionsWhenDescriptorsRunOut) {
  Client old(server_.port());
  old.send(kHello);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  std::vector<Client> queued(3);
  for (Client& client : queued) client.prepare();
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(highest_descriptor()) + 1;
  setrlimit(RLIMIT_NOFILE, &tight);
  std::vector<int> filler = fill_descriptors();
  for (Client& client : queued) client.connect(server_.port());
  for (Client& client : queued) EXPECT_TRUE(client.is_ended());
  old.send(ping(9));
  EXPECT_EQ(old.read(4), ping(9).substr(1));
  for (int fd : filler) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
  expect_alive(server_);
}

}  // namespace
}  // namespace cpprun
