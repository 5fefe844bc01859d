// The words for the state of a job.
#include "common/shown_state.hpp"

#include <gtest/gtest.h>

namespace cpprun {
namespace {

TEST(ShownStates, StatesOfAgentsHaveNamesForUsers) {
  EXPECT_STREQ(name_of(shown_state_of_agent("joining")), "waiting");
  EXPECT_STREQ(name_of(shown_state_of_agent("starting")), "starting");
  EXPECT_STREQ(name_of(shown_state_of_agent("draining")), "running");
  EXPECT_STREQ(name_of(shown_state_of_agent("stopping")), "restarting");
  EXPECT_STREQ(name_of(shown_state_of_agent("stopped")), "restarting");
  EXPECT_STREQ(name_of(shown_state_of_agent("done")), "succeeded");
  EXPECT_STREQ(name_of(shown_state_of_agent("leaving")), "stopped");
  EXPECT_STREQ(name_of(shown_state_of_agent("of a later version")), "waiting");
}

TEST(ShownStates, PhasesAndOutcomesHaveTheSameWords) {
  EXPECT_STREQ(name_of(shown_state_of_phase("waiting_for_nodes")), "waiting");
  EXPECT_STREQ(name_of(shown_state_of_phase("running")), "running");
  EXPECT_STREQ(name_of(shown_state_of_phase("stopping")), "restarting");
  EXPECT_STREQ(name_of(shown_state_of_outcome("success")), "succeeded");
  EXPECT_STREQ(name_of(shown_state_of_outcome("failure")), "failed");
  EXPECT_STREQ(name_of(shown_state_of_outcome("stopped")), "stopped");
  EXPECT_STREQ(name_of(shown_state_of_outcome("signal")), "stopped");
  EXPECT_STREQ(name_of(shown_state_of_outcome("error")), "failed");
}

TEST(ShownStates, TheFurthestAgentCounts) {
  EXPECT_EQ(joined(ShownState::Waiting, ShownState::Running), ShownState::Running);
  EXPECT_EQ(joined(ShownState::Succeeded, ShownState::Running), ShownState::Running);
  EXPECT_EQ(joined(ShownState::Restarting, ShownState::Waiting), ShownState::Restarting);
  EXPECT_EQ(joined(ShownState::Succeeded, ShownState::Succeeded), ShownState::Succeeded);
}

TEST(ShownStates, NodesUseTheWordsOfJobs) {
  EXPECT_EQ(node_state_text("idle"), "waiting");
  EXPECT_EQ(node_state_text("done"), "succeeded");
  EXPECT_EQ(node_state_text("running"), "running");
  EXPECT_EQ(node_state_text("silent"), "silent");
}

}  // namespace
}  // namespace cpprun
