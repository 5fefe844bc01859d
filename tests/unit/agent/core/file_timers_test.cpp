// torch's file timers: which processes get which signal.
#include "agent/core/file_timers.hpp"

#include <gtest/gtest.h>

#include "common/limits/agent.hpp"

namespace cpprun::test {
namespace {

using agent::FileTimers;
using agent::TimerRequest;

TEST(FileTimers, TheFirstExpiredTimerDecidesForItsProcess) {
  FileTimers timers;
  timers.take({7, "epoch", 20, 15});
  timers.take({7, "step", 10, 9});
  timers.take({8, "step", 30, 9});
  EXPECT_EQ(timers.next(), 10);
  EXPECT_TRUE(timers.expire(9.9).empty());
  const auto over = timers.expire(20);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].signal, 9);
  EXPECT_EQ(timers.next(), 30) << "those of process 7 are forgotten";
}

TEST(FileTimers, ALaterTimerReplacesAndAReleaseRemoves) {
  FileTimers timers;
  timers.take({7, "step", 10, 9});
  timers.take({7, "step", 40, 9});
  EXPECT_TRUE(timers.expire(30).empty());
  timers.take({7, "step", -1, 0});
  EXPECT_FALSE(timers.next());
}

TEST(FileTimers, WithoutASignalNothingHappens) {
  FileTimers timers;
  timers.take({7, "step", 10, 0});
  EXPECT_TRUE(timers.expire(30).empty());
  EXPECT_FALSE(timers.next());
}

TEST(FileTimers, AreLimited) {
  FileTimers timers;
  for (size_t i = 0; i < limits::kFileTimers; ++i) timers.take({7, std::to_string(i), 10, 9});
  EXPECT_FALSE(timers.take({8, "step", 10, 9}));
  EXPECT_TRUE(timers.take({7, "0", 20, 9})) << "a known one may be moved";
}

}  // namespace
}  // namespace cpprun::test
