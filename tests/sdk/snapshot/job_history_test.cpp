#include "cpprun/snapshot/job_history.hpp"

#include <gtest/gtest.h>

namespace cpprun::snapshot {
namespace {

TEST(SnapshotJobHistory, EachRestartBeforeANewProcessWasARollback) {
  EXPECT_EQ(JobHistory(0, 100).rollbacks(), 0);
  JobHistory history(3, 100);
  history.resume("a", 500, 3, 101);  // in the first round of the process
  EXPECT_EQ(history.rollbacks(), 3);
  EXPECT_DOUBLE_EQ(history.seconds(103), 502);
}

TEST(SnapshotJobHistory, RestartsThatKeepTheStateAreNoRollbacks) {
  JobHistory survivor(1, 100), newcomer(3, 900);
  survivor.begin_save("a", 150);
  for (JobHistory* each : {&newcomer, &survivor}) each->keep_state(survivor.record(200), 3, 900);
  for (JobHistory* each : {&newcomer, &survivor}) {
    EXPECT_EQ(each->rollbacks(), 1);
    EXPECT_DOUBLE_EQ(each->seconds(910), 110);
    EXPECT_DOUBLE_EQ(each->saved_at("a", 910), 50);
    each->resume("a", 50, 4, 920);
    EXPECT_EQ(each->rollbacks(), 2);
    EXPECT_DOUBLE_EQ(each->seconds(920), 50);
  }
}

TEST(SnapshotJobHistory, ASurvivorThatResumesCountsItsRestartsOnce) {
  JobHistory history(0, 100);
  history.resume("a", 10, 2, 200);
  history.resume("b", 10, 2, 201);
  EXPECT_EQ(history.rollbacks(), 2);
}

TEST(SnapshotJobHistory, SnapshotsOfLaterRoundsContinueTheInterval) {
  JobHistory history(0, 100);
  EXPECT_DOUBLE_EQ(history.saved_at("a", 110), 10);
  EXPECT_DOUBLE_EQ(history.saved_at("a", 130), 10);
  EXPECT_DOUBLE_EQ(history.begin_save("a", 140), 40);
  EXPECT_DOUBLE_EQ(history.saved_at("a", 150), 40);
  EXPECT_DOUBLE_EQ(history.saved_at("b", 150), 50);
}

}  // namespace
}  // namespace cpprun::snapshot
