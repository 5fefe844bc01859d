// The worker's store client on real sockets: with cpprun's own server, and with hostile servers.
// The tests with torch's servers are in tests/conformance/test_store_client.py.
#include "cpprun/worker/store_client.hpp"
#include "common/limits/store.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <random>
#include <thread>

#include "tests/support/hostile_server.hpp"
#include "tests/support/server_fixture.hpp"

namespace cpprun::worker {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

// The peak allocation; released memory counts too.
long most_resident_kib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

std::string number(int64_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

StoreClientOptions quick(std::string prefix = "") {
  StoreClientOptions options;
  options.timeout = 200ms;
  options.connect_timeout = 200ms;
  options.prefix = std::move(prefix);
  return options;
}

class WorkerStoreClientTest : public testing::Test {
 protected:
  StoreClient client(StoreClientOptions options = {}) const {
    Result<StoreClient> made = StoreClient::connect(address(), std::move(options));
    CPPRUN_CHECK(made.ok());
    return std::move(*made);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(server_.port()); }

  RunningServer server_;
};

TEST_F(WorkerStoreClientTest, PrefixesKeepClientsApart) {
  StoreClient plain = client();
  StoreClient inner = client(quick("round/3"));
  ASSERT_TRUE(inner.set("k", "inner").ok());
  EXPECT_EQ(*inner.get("k"), "inner");
  EXPECT_FALSE(*plain.check({"k"}));
  EXPECT_EQ(*plain.get("round/3/k"), "inner");
  EXPECT_EQ(*plain.num_keys(), 1);
}

TEST_F(WorkerStoreClientTest, NoKeysNeedNoRequest) {
  StoreClient one = client();
  EXPECT_TRUE(one.wait({}).ok());
  EXPECT_TRUE(*one.check({}));
  EXPECT_TRUE(one.multi_get({})->empty());
  EXPECT_TRUE(one.multi_set({}).ok());
}

TEST_F(WorkerStoreClientTest, DetectsADeadServer) {
  const StoreClient one = client();
  const std::vector<SocketFacts> sockets = sockets_to_port(server_.port());
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_TRUE(sockets[0].detects_dead_peer);
}

TEST_F(WorkerStoreClientTest, AMovedClientWorks) {
  StoreClient first = client();
  ASSERT_TRUE(first.set("k", "v").ok());
  StoreClient second = std::move(first);
  EXPECT_EQ(*second.get("k"), "v");
  second = client(quick());
  EXPECT_EQ(*second.get("k"), "v");
}

TEST_F(WorkerStoreClientTest, ManyKeysInOneCall) {
  StoreClient one = client();
  std::vector<std::pair<std::string, std::string>> pairs;
  std::vector<std::string> keys;
  for (int i = 0; i < 5000; ++i) {
    keys.push_back("key/" + std::to_string(i));
    pairs.emplace_back(keys.back(), std::string(static_cast<size_t>(i), 'v'));
  }
  ASSERT_TRUE(one.multi_set(pairs).ok());
  Result<std::vector<std::string>> values = one.multi_get(keys);
  ASSERT_TRUE(values.ok());
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(values->at(i), pairs[i].second);
  keys.resize(limits::kStoreListItems + 1);
  EXPECT_EQ(one.wait(keys).error().kind, ErrorKind::BadValue);
}

TEST_F(WorkerStoreClientTest, ShortensALongKeyListInTheTimeoutError) {
  StoreClient one = client();
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back("k" + std::to_string(i));
  Status waited = one.wait(keys, 0ms);
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().text,
            "wait timeout after 0ms, keys: k0, k1, k2, k3, k4, k5, k6, k7 and 12 more");
}

TEST_F(WorkerStoreClientTest, ALargeBarrierCanBeReused) {
  constexpr int kClients = 6;
  constexpr int kTimes = 50;
  std::atomic<int> inside{0};
  std::atomic<int> torn{0};
  auto run = [&] {
    StoreClient one = client();
    for (int i = 0; i < kTimes; ++i) {
      ++inside;
      if (!one.barrier("b", kClients)) ++torn;
      if (inside < (i + 1) * kClients) ++torn;  // one process is still missing
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(*client().num_keys(), 2);
}

TEST_F(WorkerStoreClientTest, BlockedPopsShareThePushedItems) {
  constexpr int kClients = 4;
  constexpr int kItems = 25;
  std::vector<std::thread> threads;
  std::atomic<int> popped{0};
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&] {
      StoreClient one = client();
      for (int n = 0; n < kItems; ++n) popped += one.queue_pop("q").ok();
    });
  }
  StoreClient pusher = client();
  for (int n = 0; n < kClients * kItems; ++n) ASSERT_TRUE(pusher.queue_push("q", "x").ok());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(popped, kClients * kItems);
  EXPECT_EQ(*pusher.queue_len("q"), 0);
}

TEST(WorkerStoreConnecting, ReportsAttemptsAndTheLastError) {
  uint16_t port = RunningServer().port();  // gone already
  Result<StoreClient> refused = StoreClient::connect("localhost:" + std::to_string(port), quick());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::Timeout);
  EXPECT_NE(refused.error().text.find("tried "), std::string::npos) << refused.error().text;
  EXPECT_NE(refused.error().text.find("(errno 111)"), std::string::npos) << refused.error().text;
}

TEST(WorkerStoreConnecting, TriesOnceWithZeroTimeout) {
  HostileServer server({.greeting = ""});
  StoreClientOptions options = quick();
  options.connect_timeout = -1ms;
  EXPECT_FALSE(StoreClient::connect(server.address(), options).ok());
}

TEST(WorkerStoreConnecting, RejectsAPortWithoutAStore) {
  ServerHooks hooks;
  hooks.store_for_main_port = [] { return nullptr; };
  RunningServer server({}, std::move(hooks));
  Result<StoreClient> refused =
      StoreClient::connect("127.0.0.1:" + std::to_string(server.port()), quick());
  ASSERT_FALSE(refused.ok());
  // The server's FIN or, where the client's bytes came after it, its RST.
  const std::string& text = refused.error().text;
  EXPECT_TRUE(text.find("closed the connection") != std::string::npos ||
              text.find("Connection reset") != std::string::npos)
      << text;
}

TEST(WorkerStoreConnecting, GivesUpOnAServerWithoutHandshake) {
  for (const HostileScript& script :
       {HostileScript{.greeting = ""}, HostileScript{.greeting = "abc"},
        HostileScript{.greeting = "abc", .hangs_up = true},
        HostileScript{.greeting = std::string(8, '\xff')}}) {
    HostileServer server(script);
    auto start = std::chrono::steady_clock::now();
    Result<StoreClient> refused = StoreClient::connect(server.address(), quick());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::Timeout) << refused.error().text;
    EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  }
}

// Every call ends in time with an error, and then the client reports why it is closed.
class WorkerStoreHostile : public testing::Test {
 protected:
  static StoreClient connect(const HostileServer& server) {
    Result<StoreClient> made = StoreClient::connect(server.address(), quick());
    CPPRUN_CHECK(made.ok());
    return std::move(*made);
  }

  template <class Call>
  static void expect_error(const HostileScript& script, Call call, ErrorKind kind) {
    HostileServer server(script);
    StoreClient client = connect(server);
    auto start = std::chrono::steady_clock::now();
    auto result = call(client);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 40s);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, kind) << result.error().text;
    Status after = client.set("k", "v");
    ASSERT_FALSE(after.ok());
    EXPECT_NE(after.error().text.find("is closed, because: "), std::string::npos)
        << after.error().text;
  }
};

auto add_one = [](StoreClient& c) { return c.add("k", 1); };
auto get_it = [](StoreClient& c) { return c.get("k"); };
auto check_it = [](StoreClient& c) { return c.check({"k"}); };
auto wait_for_it = [](StoreClient& c) { return c.wait({"k"}); };
auto compare_it = [](StoreClient& c) { return c.compare_set("k", "a", "b"); };

TEST_F(WorkerStoreHostile, ServerNeverAnswers) {
  expect_error({}, add_one, ErrorKind::Timeout);
  expect_error({}, get_it, ErrorKind::Timeout);
  expect_error({}, wait_for_it, ErrorKind::Timeout);
  expect_error({}, compare_it, ErrorKind::Timeout);
}

TEST_F(WorkerStoreHostile, ServerStopsInsideAnAnswer) {
  expect_error({.answer = "abc"}, add_one, ErrorKind::Timeout);
  expect_error({.answer = number(100) + "abc"}, compare_it, ErrorKind::Timeout);
}

TEST_F(WorkerStoreHostile, ServerDisconnectsInsideAnAnswer) {
  expect_error({.hangs_up = true}, add_one, ErrorKind::Network);
  expect_error({.answer = "abc", .hangs_up = true}, add_one, ErrorKind::Network);
  expect_error({.answer = number(100) + "abc", .hangs_up = true}, compare_it, ErrorKind::Network);
  expect_error({.hangs_up = true}, wait_for_it, ErrorKind::Network);
}

TEST_F(WorkerStoreHostile, ServerAnswersGarbage) {
  expect_error({.answer = "\x07"}, check_it, ErrorKind::Protocol);
  expect_error({.answer = "\x07"}, wait_for_it, ErrorKind::Protocol);
  expect_error({.answer = "\x01"}, wait_for_it, ErrorKind::Protocol);
  expect_error({.answer = "HTTP/1.1 400 Bad Request\r\n"}, compare_it, ErrorKind::Protocol);
  auto remove = [](StoreClient& c) { return c.delete_key("k"); };
  expect_error({.answer = number(2)}, remove, ErrorKind::Protocol);
  auto queue = [](StoreClient& c) { return c.queue_len("k"); };
  expect_error({.answer = number(-1)}, queue, ErrorKind::Protocol);
}

TEST_F(WorkerStoreHostile, ServerSendsUnrequestedBytes) {
  HostileServer server({.answer = number(1) + "and more"});
  StoreClient client = connect(server);
  EXPECT_EQ(*client.add("k", 1), 1);
  EXPECT_EQ(client.add("k", 1).error().kind, ErrorKind::Protocol);
}

TEST_F(WorkerStoreHostile, AnAnnouncedLengthAllocatesNothing) {
  long before = most_resident_kib();
  expect_error({.answer = number((1 << 30)) + "abc", .hangs_up = true}, compare_it,
               ErrorKind::Network);
  EXPECT_LT(most_resident_kib() - before, 64 * 1024);
  expect_error({.answer = number((1 << 30) + 1)}, compare_it, ErrorKind::Protocol);
  expect_error({.answer = number(-1)}, compare_it, ErrorKind::Protocol);
}

TEST_F(WorkerStoreHostile, ServerFloodsWithoutEnd) {
  HostileServer server({.answer = std::string(4096, '\0'), .is_trickling = true});
  StoreClient client = connect(server);
  for (int i = 0; i < 3; ++i) {
    if (!client.add("k", 1)) break;
  }
  EXPECT_EQ(client.add("k", 1).error().kind, ErrorKind::Network);
}

TEST_F(WorkerStoreHostile, RandomBytesNeverCrashTheClient) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    std::string noise(random() % 64, '\0');
    for (char& c : noise) c = static_cast<char>(random() % 4 == 0 ? random() : 0);
    HostileServer server({.answer = noise, .hangs_up = true});
    StoreClient client = connect(server);
    if (round % 4 == 0) static_cast<void>(client.multi_get({"a", "b"}));
    if (round % 4 == 1) static_cast<void>(client.queue_pop("q"));
    if (round % 4 == 2) static_cast<void>(client.barrier("b", 2));
    if (round % 4 == 3) static_cast<void>(client.compare_set("b", "", ""));
  }
}

}  // namespace
}  // namespace cpprun::worker
