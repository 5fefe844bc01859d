// Work over c10d's: with a backend that the test completes by hand, and with Gloo in a world of
// one.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "tests/sdk/dist/hand_work.hpp"

namespace cpprun::dist {
namespace {

using namespace std::chrono_literals;
using Kind = Work::State::Kind;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Completes only inside wait, and may be waited for once, like Gloo's sends and receives.
class WaitedOnceWork : public HandWork {
 public:
  bool isCompleted() override { return false; }
  bool wait(std::chrono::milliseconds timeout) override {
    EXPECT_EQ(waits, 0);
    HandWork::wait(timeout);
    return !is_aborted;
  }
};

TEST(AsyncWork, AnEmptyWorkIsDone) {
  Work work;
  EXPECT_TRUE(work.is_completed());
  EXPECT_TRUE(work.wait_for(0ms));
  EXPECT_EQ(work.exception(), nullptr);
  work.wait();
}

TEST(AsyncWork, ANullNativeWorkIsDone) {
  int finished = 0;
  auto made = Made::make(c10::intrusive_ptr<HandWork>(), Kind::Polled, [&] { ++finished; });
  EXPECT_TRUE(made.work.is_completed());
  made.work.wait();
  EXPECT_EQ(finished, 1);
}

TEST(AsyncWork, ReportsCompletion) {
  auto native = c10::make_intrusive<HandWork>();
  auto made = Made::make(native, Kind::Polled);
  EXPECT_FALSE(made.work.is_completed());
  EXPECT_FALSE(made.work.wait_for(5ms));
  EXPECT_EQ(made.work.exception(), nullptr);
  native->end();
  EXPECT_TRUE(made.work.is_completed());
  EXPECT_TRUE(made.work.wait_for(0ms));
  EXPECT_EQ(made.work.exception(), nullptr);
}

TEST(AsyncWork, FinishesOnceForManyCallers) {
  auto native = c10::make_intrusive<HandWork>();
  std::atomic<int> finished = 0;
  auto made = Made::make(native, Kind::Polled, [&] { ++finished; });
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) waiters.emplace_back([work = made.work]() mutable { work.wait(); });
  native->end();
  for (auto& waiter : waiters) waiter.join();
  made.work.wait();
  EXPECT_EQ(finished, 1);
}

TEST(AsyncWork, TranslatesAndKeepsErrorsAndBreaksTheGroup) {
  auto native = c10::make_intrusive<HandWork>();
  auto made = Made::make(native, Kind::Polled);
  native->end(broken());
  EXPECT_TRUE(made.work.is_completed());
  EXPECT_NE(made.work.exception(), nullptr);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT([&] { made.work.wait(); },
                ThrowsMessage<DistNetworkError>(HasSubstr("call in group: Connection closed")));
  }
  EXPECT_THROW(made.work.wait_for(1s), DistNetworkError);
  EXPECT_THAT(made.group->health.broken(), HasSubstr("Connection closed by peer"));
}

TEST(AsyncWork, AnErrorAfterTheBackendIsReported) {
  auto native = c10::make_intrusive<HandWork>();
  auto made = Made::make(native, Kind::Polled, [] { throw std::runtime_error("no memory"); });
  native->end();
  EXPECT_TRUE(made.work.is_completed());
  EXPECT_THROW(made.work.wait(), DistBackendError);
}

TEST(AsyncWork, SendsAndReceivesAreWaitedForOnce) {
  auto native = c10::make_intrusive<WaitedOnceWork>();
  auto made = Made::make(native, Kind::FromAnybody);
  EXPECT_FALSE(made.work.is_completed());
  EXPECT_FALSE(made.work.wait_for(5ms));
  native->end();
  EXPECT_TRUE(made.work.wait_for(10s));
  made.work.wait();
  EXPECT_TRUE(made.work.is_completed());
  EXPECT_EQ(native->waits, 1);
  EXPECT_EQ(made.work.state()->source_rank(), 3);
}

TEST(AsyncWork, DroppingAnUnfinishedReceiveWakesItsWatcherAndKeepsIt) {
  auto native = c10::make_intrusive<WaitedOnceWork>();
  auto made = Made::make(native, Kind::WaitedOnce);
  EXPECT_FALSE(made.work.wait_for(5ms));
  made.work = Work();
  EXPECT_TRUE(native->is_aborted);
  EXPECT_EQ(native.use_count(), 2u);
  made.group->health.drop_pending();
  EXPECT_EQ(native.use_count(), 1u);
}

TEST(AsyncWork, DroppingAnUnfinishedSendKeepsIt) {
  auto native = c10::make_intrusive<WaitedOnceWork>();
  auto made = Made::make(native, Kind::WaitedOnce);
  made.work = Work();
  EXPECT_FALSE(native->is_aborted);
  EXPECT_EQ(native.use_count(), 2u);
}

TEST(AsyncWork, DroppingAnUnfinishedCollectiveLeavesItToTheBackend) {
  auto native = c10::make_intrusive<HandWork>();
  Made::make(native, Kind::Polled);
  EXPECT_EQ(native.use_count(), 1u);
  EXPECT_EQ(native->waits, 0);
}

// Ends only inside wait and has no abort, like Gloo's reduce_scatter.
class EndsInWaitWork : public c10d::Work {
 public:
  bool wait(std::chrono::milliseconds) override {
    is_open.wait(false);
    return true;
  }
  void open() {
    is_open = true;
    is_open.notify_all();
  }

 private:
  std::atomic<bool> is_open = false;
};

TEST(AsyncWork, ReportsTheEndOfAWorkThatEndsInWait) {
  auto native = c10::make_intrusive<EndsInWaitWork>();
  int finished = 0;
  auto made = Made::make(native, Kind::EndsInWait, [&] { ++finished; });
  EXPECT_FALSE(made.work.wait_for(5ms));
  EXPECT_THROW(made.work.then([] {}), DistUnsupportedError);
  native->open();
  EXPECT_TRUE(made.work.wait_for(5min));
  EXPECT_EQ(finished, 1);
}

TEST(AsyncWork, DroppingAWorkThatEndsInWaitWaitsForItsWatcher) {
  auto native = c10::make_intrusive<EndsInWaitWork>();
  auto made = Made::make(native, Kind::EndsInWait);
  EXPECT_FALSE(made.work.is_completed());
  native->open();
  made.work = Work();
  EXPECT_EQ(native.use_count(), 1u);
  EXPECT_EQ(made.group->health.broken(), "");
}

InitOptions alone() {
  InitOptions options;
  options.backend = "gloo";
  options.store = make_hash_store();
  options.rank = 0;
  options.world_size = 1;
  return options;
}

TEST(AsyncWork, WrapsGlooWork) {
  const auto group = init_process_group(alone());
  const auto x = torch::arange(6, at::kFloat).reshape({2, 3});
  auto work = all_reduce(x, ReduceOp::AVG, {.async_op = true});
  EXPECT_TRUE(work.wait_for(10s));
  EXPECT_TRUE(at::equal(x, torch::arange(6, at::kFloat).reshape({2, 3})));
  const auto part = torch::zeros({6});
  auto scattered = reduce_scatter_tensor(part, x, ReduceOp::SUM, {.async_op = true});
  EXPECT_TRUE(scattered.wait_for(5min));
  EXPECT_TRUE(at::equal(part, x.flatten()));
  for (int i = 0; i < 100; ++i) all_reduce(torch::ones({1000}), ReduceOp::SUM, {.async_op = true});
}

}  // namespace
}  // namespace cpprun::dist
