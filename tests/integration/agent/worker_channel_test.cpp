// The worker channel, both ends in one process: the agent's on a loop of its own thread, the
// worker's as the SDK has it. Real workers are in tests/integration/test_worker_channel.py.
#include "agent/process/channel/worker_channel.hpp"
#include "common/limits/channel.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <cstring>
#include <future>
#include <mutex>
#include <span>
#include <thread>

#include "cpprun/worker/internal/agent_socket.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "tests/support/server_fixture.hpp"

namespace cpprun {
namespace {

using worker::AgentSocket;

constexpr int kRank = 3;
const auto arena_memory = [] { return uint64_t{64} << 20; };

class WorkerChannelTest : public testing::Test {
 protected:
  WorkerChannelTest() {
    // In a process namespace whose first process does not lead its session, that session has no
    // name.
    if (::getsid(0) <= 0) ::setsid();
    WorkerChannel::Events events;
    events.worker_of = [this](int session) -> std::optional<int> {
      if (is_strange_ || session != ::getsid(0)) return std::nullopt;
      return rank_;
    };
    events.on_ready = [this](int rank) { ready_ += rank == kRank ? 1 : 100; };
    events.commit_refusal = [this] {
      ++asked_;
      return is_stopping_ ? "it is being stopped" : "";
    };
    events.on_snapshot = [this](int rank, int64_t step, const std::string& path) {
      const std::lock_guard lock(reported_mutex_);
      reported_.push_back(std::to_string(rank) + " " + std::to_string(step) + " " + path);
    };
    channel_.emplace(loop_, name_, std::move(events), std::make_shared<Arenas>(arena_memory));
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
  WorkerChannel::FinalReport end_worker() {
    return call([](WorkerChannel& c) { return c.worker_exited(kRank); });
  }
  bool is_alive() { return AgentSocket::connect(name_).page() != nullptr; }

  static bool asks_for_leave(const AgentSocket& agent) {
    const auto answer = agent.request(channel::CommitRequest{.step = 7});
    return answer && std::get<channel::Permission>(answer->message).is_permitted;
  }
  std::vector<std::string> reported() {
    const std::lock_guard lock(reported_mutex_);
    return reported_;
  }

  // A socket that sends arbitrary bytes.
  UniqueFd raw() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data(), name_.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const timeval limit{10, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const auto* whole = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(fd.get(), whole, size), 0);
    return fd;
  }
  static bool send_bytes(const UniqueFd& fd, const std::string& bytes) {
    return ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
  }
  // Expects the agent to disconnect; ignores earlier answers.
  static bool is_hung_up_on(const UniqueFd& fd) {
    char bytes[64];
    ssize_t size = 0;
    while ((size = ::recv(fd.get(), bytes, sizeof bytes, 0)) > 0) continue;
    return size == 0 || errno == ECONNRESET;
  }

  const std::string name_ = "cpprun/test/" + std::to_string(::getpid());
  std::atomic<bool> is_strange_{false}, is_stopping_{false};
  std::atomic<int> asked_{0}, rank_{kRank};
  std::mutex reported_mutex_;
  std::vector<std::string> reported_;
  std::atomic<int> ready_{0};
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      loop_.get_executor()};
  std::optional<WorkerChannel> channel_;
  std::thread thread_;
};

TEST_F(WorkerChannelTest, BothSidesShareOnePage) {
  AgentSocket agent = AgentSocket::connect(name_);
  ASSERT_NE(agent.page(), nullptr);
  EXPECT_EQ(agent.page()->bytes, sizeof(WorkerPage));
  EXPECT_EQ(agent.page()->wants_stop, 0u);
  call([](WorkerChannel& c) { return c.ask_to_stop(), 0; });
  EXPECT_EQ(agent.page()->wants_stop, 1u);
  agent.page()->step = 12;
  agent.page()->collectives = 7;
  agent.page()->heartbeat_ns = 1;
  WorkerChannel::FinalReport words = end_worker();
  ASSERT_TRUE(words.heartbeat.has_value());
  EXPECT_EQ(words.heartbeat->step, 12);
  EXPECT_EQ(words.heartbeat->collectives, 7);
  EXPECT_EQ(words.report, "");
}

TEST_F(WorkerChannelTest, AWorkerThatConnectsAfterTheStopSeesIt) {
  call([](WorkerChannel& c) { return c.ask_to_stop(), 0; });
  EXPECT_EQ(AgentSocket::connect(name_).page()->wants_stop, 1u);
}

TEST_F(WorkerChannelTest, ANewRoundHasNewPages) {
  AgentSocket old = AgentSocket::connect(name_);
  old.page()->step = 5;
  call([](WorkerChannel& c) { return c.ask_to_stop(), c.worker_exited(kRank), 0; });
  call([](WorkerChannel& c) { return c.begin_round(1), 0; });
  AgentSocket fresh = AgentSocket::connect(name_);
  EXPECT_EQ(fresh.page()->step, 0);
  EXPECT_EQ(fresh.page()->wants_stop, 0u);
  EXPECT_FALSE(end_worker().heartbeat.has_value());
}

TEST_F(WorkerChannelTest, ThePageOfASurvivorHasNothingOfTheLastRound) {
  const AgentSocket agent = AgentSocket::connect(name_);
  WorkerPage& page = *agent.page();
  for (std::atomic<int64_t>* number :
       {&page.heartbeat_ns, &page.step, &page.collectives, &page.step_ns, &page.saved_ns,
        &page.snapshot_written, &page.snapshot_newest}) {
    *number = 5;
  }
  page.phase = page.is_ready = page.wants_stop = page.progress_only = 1;
  call([](WorkerChannel& c) { return c.begin_round(1, {kRank}), 0; });
  EXPECT_EQ(page.phase + page.is_ready + page.wants_stop + page.progress_only, 0u);
  EXPECT_EQ(page.snapshot_written + page.snapshot_newest, 0);
  EXPECT_FALSE(call([](WorkerChannel& c) { return c.heartbeat(kRank); }).has_value());
  page.heartbeat_ns = 1;
  const auto beat = call([](WorkerChannel& c) { return c.heartbeat(kRank); });
  ASSERT_TRUE(beat.has_value());
  EXPECT_EQ(beat->step + beat->collectives, 0);
  EXPECT_EQ(beat->step_takes + beat->saved, Duration{});
}

TEST_F(WorkerChannelTest, HeartbeatsThatShowProgressOnlyAreNoneForTheHangDetector) {
  const AgentSocket agent = AgentSocket::connect(name_);
  WorkerPage& page = *agent.page();
  page.step = 5;
  page.heartbeat_ns = 1;
  const auto observed = [&] {
    WorkerObservation worker;
    call([&](WorkerChannel& c) { return c.observe(kRank, worker), 0; });
    return worker.beat.has_value();
  };
  EXPECT_TRUE(observed());
  page.progress_only = 1;
  EXPECT_FALSE(observed());
  const auto beat = call([](WorkerChannel& c) { return c.heartbeat(kRank); });
  ASSERT_TRUE(beat.has_value());
  EXPECT_EQ(beat->step, 5);
}

TEST_F(WorkerChannelTest, AnyTimeMayStandOnAPage) {
  AgentSocket agent = AgentSocket::connect(name_);
  ASSERT_NE(agent.page(), nullptr);
  for (const int64_t since : {INT64_MIN, int64_t{-1}, int64_t{0}}) {
    agent.page()->section_since_ns = since;
    WorkerObservation worker;
    call([&](WorkerChannel& c) { return c.observe(kRank, worker), 0; });
    EXPECT_GT(worker.section_age, Duration{}) << since << ": as long as the clock runs";
  }
  agent.page()->section_since_ns = INT64_MAX;
  WorkerObservation worker;
  call([&](WorkerChannel& c) { return c.observe(kRank, worker), 0; });
  EXPECT_EQ(worker.section_age, Duration{});
}

TEST_F(WorkerChannelTest, APageCannotBeTruncated) {
  UniqueFd fd = raw();
  ASSERT_TRUE(send_bytes(fd, channel::encode(channel::Hello{})));
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
  UniqueFd page(memory);
  EXPECT_LT(::ftruncate(memory, 100), 0);
  EXPECT_LT(::ftruncate(memory, 1 << 20), 0);
}

TEST_F(WorkerChannelTest, DisconnectsForeignProcesses) {
  is_strange_ = true;
  UniqueFd fd = raw();
  send_bytes(fd, channel::encode(channel::Hello{}));
  EXPECT_TRUE(is_hung_up_on(fd));
  EXPECT_FALSE(is_alive());
  is_strange_ = false;
  EXPECT_TRUE(is_alive());
}

TEST_F(WorkerChannelTest, RejectsForeignProcessesInBursts) {
  is_strange_ = true;
  const auto start = std::chrono::steady_clock::now();
  std::vector<UniqueFd> knocking;
  for (int i = 0; i < 3 * limits::kChannelBurst + 1; ++i) knocking.push_back(raw());
  for (const UniqueFd& fd : knocking) EXPECT_TRUE(is_hung_up_on(fd));
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

TEST_F(WorkerChannelTest, AsksForEachCommitPermission) {
  AgentSocket agent = AgentSocket::connect(name_);
  EXPECT_TRUE(asks_for_leave(agent));
  call([](WorkerChannel& c) { return c.ask_to_stop(), 0; });
  EXPECT_TRUE(asks_for_leave(agent));  // a worker that is asked to save may commit
  is_stopping_ = true;
  EXPECT_FALSE(asks_for_leave(agent));
  is_stopping_ = false;
  EXPECT_TRUE(asks_for_leave(agent));
}

TEST_F(WorkerChannelTest, ConcurrentRequestsGetTheirOwnAnswers) {
  AgentSocket agent = AgentSocket::connect(name_);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n) right += asks_for_leave(agent) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 40);
}

TEST_F(WorkerChannelTest, DropsAnAnswerThatArrivesTooLate) {
  AgentSocket agent = AgentSocket::connect(name_);
  std::promise<void> may_go;
  boost::asio::post(loop_, [&] { may_go.get_future().wait(); });
  const channel::CommitRequest question{.step = 7};
  EXPECT_FALSE(agent.request(question, std::chrono::milliseconds(1)).has_value());
  may_go.set_value();
  ASSERT_TRUE(eventually([&] { return asked_ == 1; }));  // a late answer
  is_stopping_ = true;
  EXPECT_FALSE(asks_for_leave(agent));
}

TEST_F(WorkerChannelTest, AnnouncesSnapshotsToAllWorkers) {
  AgentSocket one = AgentSocket::connect(name_);
  one.send(channel::Snapshot{20, "/snapshots/step-20"});
  one.send(channel::Snapshot{10, "/snapshots/step-10"});
  EXPECT_TRUE(eventually([&] { return reported().size() == 2; }));
  EXPECT_EQ(reported()[0], "3 20 /snapshots/step-20");
  EXPECT_EQ(one.page()->snapshot_newest, 20);
  rank_ = kRank + 1;  // one that comes later
  EXPECT_EQ(AgentSocket::connect(name_).page()->snapshot_newest, 20);
  rank_ = kRank;
  end_worker();
  call([](WorkerChannel& c) { return c.begin_round(1), 0; });
  EXPECT_EQ(AgentSocket::connect(name_).page()->snapshot_newest, 0);
}

TEST_F(WorkerChannelTest, RecordsWhichWorkersCanSave) {
  const auto can_save = [&] { return call([](WorkerChannel& c) { return c.can_save(kRank); }); };
  EXPECT_FALSE(can_save());
  AgentSocket agent = AgentSocket::connect(name_);
  EXPECT_FALSE(can_save());
  agent.page()->can_save = 1;
  EXPECT_TRUE(can_save());
  end_worker();
  call([](WorkerChannel& c) { return c.begin_round(1), 0; });
  EXPECT_FALSE(can_save());
}

// Version 1 has a page, readiness and reports.
TEST_F(WorkerChannelTest, SupportsAnOlderWorkerProtocol) {
  UniqueFd fd = raw();
  ASSERT_TRUE(send_bytes(fd, channel::encode(channel::Hello{1})));
  char bytes[64];
  ASSERT_GT(::recv(fd.get(), bytes, sizeof bytes, 0), 0);
  send_bytes(fd, channel::encode(channel::Report{"old"}));
  EXPECT_EQ(end_worker().report, "old");
  UniqueFd other = raw();
  send_bytes(other, channel::encode(channel::Hello{1}));
  send_bytes(other, channel::encode(channel::CommitRequest{1, 1}));
  EXPECT_TRUE(is_hung_up_on(other));
}

TEST_F(WorkerChannelTest, ReadsAFinalReportThatArrivesLate) {
  AgentSocket agent = AgentSocket::connect(name_);
  std::promise<void> may_go;
  boost::asio::post(loop_, [&] { may_go.get_future().wait(); });  // the agent is busy meanwhile
  agent.send(channel::Report{"first"});
  agent.send(channel::Report{"boom"});
  may_go.set_value();
  EXPECT_EQ(end_worker().report, "boom");
  EXPECT_EQ(end_worker().report, "");
}

TEST_F(WorkerChannelTest, AnInvalidMessageEndsTheConnection) {
  using channel::encode;
  const std::string hello = encode(channel::Hello{});
  const std::string report = encode(channel::Report{std::string(4096, 'x')});
  for (const std::string& bytes :
       {std::string("x"), std::string(60'000, '\0'), report + "x", encode(channel::Ready{}), report,
        encode(channel::Hello{99}), encode(channel::Hello{0}), encode(channel::Page{4096}),
        encode(channel::CommitRequest{1, 1}), encode(channel::ArenaRequest{1, 1})}) {
    UniqueFd fd = raw();
    send_bytes(fd, bytes);
    EXPECT_TRUE(is_hung_up_on(fd)) << bytes.substr(0, 12);
  }
  for (const std::string& bytes :
       {encode(channel::Page{4096}), encode(channel::Arena{1, 0, {}}),
        encode(channel::Permission{1, true, {}}), encode(channel::Snapshot{-1, "/x"}),
        encode(channel::Snapshot{1, "x"}), encode(channel::Snapshot{1, std::string("/x\0y", 4)})}) {
    UniqueFd fd = raw();
    send_bytes(fd, hello);
    send_bytes(fd, bytes);
    EXPECT_TRUE(is_hung_up_on(fd)) << bytes.substr(0, 12);
  }
  EXPECT_TRUE(reported().empty());
  UniqueFd twice = raw();
  send_bytes(twice, hello);
  send_bytes(twice, hello);
  EXPECT_TRUE(is_hung_up_on(twice));
  EXPECT_TRUE(is_alive());
}

std::string range(uint64_t at, uint64_t bytes) {
  std::string text(16, '\0');
  std::memcpy(text.data(), &at, 8);
  std::memcpy(text.data() + 8, &bytes, 8);
  return text;
}

channel::Checksums checksums_of(const AgentSocket& agent, const std::string& ranges) {
  const auto answer = agent.request(channel::ChecksumRequest{.ranges = ranges});
  return answer ? std::get<channel::Checksums>(answer->message) : channel::Checksums{};
}

TEST_F(WorkerChannelTest, ComputesChecksumsOfTheWorkersArena) {
  AgentSocket agent = AgentSocket::connect(name_);
  EXPECT_EQ(checksums_of(agent, range(0, 1)).text, "local rank 3 keeps nothing in memory");
  const size_t bytes = 2 * limits::kChecksumBlock + 100;  // more than one block
  const auto arena = agent.request(channel::ArenaRequest{.bytes = bytes});
  ASSERT_TRUE(arena);
  const std::string content(bytes, 'a');
  ASSERT_EQ(::pwrite(arena->descriptor(), content.data(), bytes, 0), static_cast<ssize_t>(bytes));
  const channel::Checksums given =
      checksums_of(agent, range(0, bytes) + range(1, 3) + range(bytes, 0));
  ASSERT_TRUE(given.is_given) << given.text;
  const auto crc_of = [](const std::string& text) {
    return archive::crc32(std::as_bytes(std::span(text)));
  };
  std::array<uint32_t, 3> crcs{};
  ASSERT_EQ(given.text.size(), sizeof crcs);
  std::memcpy(crcs.data(), given.text.data(), sizeof crcs);
  EXPECT_THAT(crcs, testing::ElementsAre(crc_of(content), crc_of("aaa"), 0));
}

// A range with whole huge pages is mapped where the kernel can provide them, in windows.
TEST_F(WorkerChannelTest, ComputesChecksumsOfHugePages) {
  AgentSocket agent = AgentSocket::connect(name_);
  constexpr size_t kBytes = limits::kChecksumWindow + (5 << 20);
  const auto arena = agent.request(channel::ArenaRequest{.bytes = kBytes});
  ASSERT_TRUE(arena);
  std::string content(kBytes, 0);
  for (size_t i = 0; i < kBytes; i += 8) {
    const uint64_t number = i * 0x9E3779B97F4A7C15;
    std::memcpy(&content[i], &number, sizeof number);
  }
  ASSERT_EQ(::pwrite(arena->descriptor(), content.data(), kBytes, 0), static_cast<ssize_t>(kBytes));
  struct Range {
    size_t at, bytes;
  };
  const std::vector<Range> all{{0, kBytes},        {4096, 4 << 20},     {(3 << 20) + 1, 2 << 20},
                               {7, kBytes - 1007}, {kBytes - 9, 9},     {1 << 20, 1 << 20},
                               {2 << 20, 2 << 20}, {5 << 20, 32 << 20}, {3, 0}};
  std::string ranges;
  for (const Range& each : all) ranges += range(each.at, each.bytes);
  const channel::Checksums given = checksums_of(agent, ranges);
  ASSERT_TRUE(given.is_given) << given.text;
  std::vector<uint32_t> crcs(all.size());
  ASSERT_EQ(given.text.size(), crcs.size() * sizeof(uint32_t));
  std::memcpy(crcs.data(), given.text.data(), given.text.size());
  const auto bytes = std::as_bytes(std::span(content));
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(crcs[i], archive::crc32(bytes.subspan(all[i].at, all[i].bytes))) << i;
  }
}

TEST_F(WorkerChannelTest, RefusesChecksumsOfImpossibleRanges) {
  AgentSocket agent = AgentSocket::connect(name_);
  const auto arena = agent.request(channel::ArenaRequest{.bytes = 4 << 20});
  ASSERT_TRUE(arena);
  const uint64_t all = std::get<channel::Arena>(arena->message).bytes;
  for (const std::string& ranges :
       {std::string(), std::string("x"), range(0, 1) + "x", range(all, 1), range(0, all + 1),
        range(1, all), range(UINT64_MAX, 1), range(1, UINT64_MAX), range(UINT64_MAX, UINT64_MAX)}) {
    const channel::Checksums refused = checksums_of(agent, ranges);
    EXPECT_FALSE(refused.is_given);
    EXPECT_NE(refused.text, "");
  }
  std::string much;
  for (uint64_t sum = 0; sum <= limits::kChecksumBytes; sum += all) much += range(0, all);
  EXPECT_EQ(checksums_of(agent, much).text, "too many bytes at once");
  EXPECT_TRUE(checksums_of(agent, range(0, all)).is_given);
}

// The rest of its requests wait in its socket, and cost no thread each.
TEST_F(WorkerChannelTest, ComputesChecksumsForOneRequestAtATime) {
  UniqueFd fd = raw();
  send_bytes(fd, channel::encode(channel::Hello{}));
  send_bytes(fd, channel::encode(channel::ArenaRequest{1, 32 << 20}));
  std::string much;  // as much as a request may ask for: the first one still runs at the third
  for (uint64_t sum = 0; sum < limits::kChecksumBytes; sum += 32 << 20) much += range(0, 32 << 20);
  for (uint32_t id = 2; id < 5; ++id) {
    ASSERT_TRUE(send_bytes(fd, channel::encode(channel::ChecksumRequest{id, much})));
  }
  int given = 0, refused = 0;
  uint8_t bytes[channel::kMessageBytes];
  while (given + refused < 3) {
    const ssize_t size = ::recv(fd.get(), bytes, sizeof bytes, 0);
    ASSERT_GT(size, 0);
    const auto message = channel::decode({bytes, static_cast<size_t>(size)});
    ASSERT_TRUE(message);
    const auto* checksums = std::get_if<channel::Checksums>(&*message);
    if (checksums != nullptr) ++(checksums->is_given ? given : refused);
  }
  EXPECT_EQ(given, 1);
}

TEST_F(WorkerChannelTest, ThrottlesAFloodingWorker) {
  AgentSocket agent = AgentSocket::connect(name_);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3 * limits::kWorkerMessages; ++i) ASSERT_TRUE(asks_for_leave(agent));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 2 * limits::kChannelPause);
  EXPECT_TRUE(is_alive());
}

TEST_F(WorkerChannelTest, DisconnectsAWorkerThatReadsNoAnswers) {
  UniqueFd fd = raw();
  send_bytes(fd, channel::encode(channel::Hello{}));
  const std::string question = channel::encode(channel::ArenaRequest{1, 1});
  while (send_bytes(fd, question)) continue;
  EXPECT_TRUE(is_alive());
}

TEST_F(WorkerChannelTest, LimitsConnectionsPerWorker) {
  std::vector<UniqueFd> open;
  for (size_t i = 0; i < limits::kWorkerConnections; ++i) {
    open.push_back(raw());
    ASSERT_TRUE(send_bytes(open.back(), channel::encode(channel::Hello{})));
    char byte = 0;
    ASSERT_EQ(::recv(open.back().get(), &byte, 1, 0), 1);
  }
  UniqueFd more = raw();
  EXPECT_TRUE(is_hung_up_on(more));
  open.pop_back();
  EXPECT_TRUE(eventually([&] { return is_alive(); }));
}

TEST_F(WorkerChannelTest, ClosesDescriptorsReceivedFromAWorker) {
  UniqueFd fd = raw();
  send_bytes(fd, channel::encode(channel::Hello{}));
  const std::string ready = channel::encode(channel::Ready{});
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]);
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
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // the other end is closed
}

TEST_F(WorkerChannelTest, AcceptsHeartbeatsFromManyThreads) {
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

TEST(WorkerChannel, StaysClosedWhenItsNameIsTaken) {
  boost::asio::io_context loop;
  const std::string name = "cpprun/test/taken/" + std::to_string(::getpid());
  WorkerChannel first(loop, name, {}, {});
  WorkerChannel second(loop, name, {}, {});
  EXPECT_TRUE(first.is_open());
  EXPECT_FALSE(second.is_open());
}

}  // namespace
}  // namespace cpprun
