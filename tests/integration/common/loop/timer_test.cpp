#include "common/loop/timer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace cpprun {
namespace {

using namespace std::chrono_literals;

struct TimerTest : testing::Test {
  boost::asio::io_context loop;
  int calls = 0;
  std::optional<Timer> timer{std::in_place, loop, [this] { ++calls; }};
};

TEST_F(TimerTest, CallsOnceAtItsDeadline) {
  const Instant deadline = boot_now() + 5ms;
  timer->set(deadline);
  EXPECT_EQ(timer->at(), deadline);
  loop.run();
  EXPECT_GE(boot_now(), deadline);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(timer->at().is_never());
}

TEST_F(TimerTest, CallsAtOnceForAPastDeadline) {
  timer->set(Instant());
  loop.run();
  EXPECT_EQ(calls, 1);
}

TEST_F(TimerTest, ANewDeadlineReplacesTheOldOne) {
  timer->set(boot_now() + 1h);
  timer->set(Instant());
  loop.run();
  EXPECT_EQ(calls, 1);
}

TEST_F(TimerTest, NeverMeansNoCall) {
  timer->set(Instant());
  timer->set(Instant::never());
  loop.run();
  EXPECT_EQ(calls, 0);
}

TEST_F(TimerTest, TheCallbackMaySetTheNextDeadline) {
  timer.emplace(loop, [this] {
    if (++calls < 3) timer->set(Instant());
  });
  timer->set(Instant());
  loop.run();
  EXPECT_EQ(calls, 3);
}

TEST_F(TimerTest, NoCallComesAfterItsDestruction) {
  timer->set(Instant());
  timer.reset();
  loop.run();
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace cpprun
