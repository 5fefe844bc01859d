// Adds up the reports of nodes, and nothing that no agent can have done.
#include "common/start_totals.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

WorkerStarts report(int64_t forked, int64_t by_script, Duration saved) {
  WorkerStarts starts;
  starts.forked = forked;
  for (int64_t i = 0; i < by_script; ++i) starts.count_spawn(SpawnReason::Script);
  starts.saved_time = saved;
  return starts;
}

TEST(StartTotals, AddsWhatHasGrownOnEachNode) {
  StartTotals totals;
  totals.add({}, report(2, 1, 3s));
  totals.add(report(2, 1, 3s), report(4, 1, 6s));
  totals.add({}, report(1, 0, 500ms));  // another node
  EXPECT_EQ(totals.forked(), 5);
  EXPECT_EQ(totals.spawned(SpawnReason::Script), 1);
  EXPECT_EQ(totals.spawned(SpawnReason::Fork), 0);
  EXPECT_EQ(totals.saved_ms(), 6'500);
}

TEST(StartTotals, NeverShrinksOrOverflows) {
  StartTotals totals;
  totals.add({}, report(3, 0, 1s));
  totals.add(report(3, 0, 1s), report(1, 0, 0s));
  totals.add({}, report(INT64_MAX, 0, 0s));
  totals.add(report(INT64_MIN, 0, 0s), report(INT64_MAX, 0, 0s));
  EXPECT_EQ(totals.forked(), 3);
  EXPECT_EQ(totals.saved_ms(), 1'000);
}

}  // namespace
}  // namespace cpprun::test
