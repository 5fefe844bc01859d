// What `scontrol show job` shows before a requeue: ExcNodeList, and whether Slurm ends the job
// already.
#include <gtest/gtest.h>

#include "launcher/options/cluster.hpp"

namespace cpprun {
namespace {

TEST(ExclusionList, TheHostsByTheirShortNames) {
  const std::string shown = "JobId=7\n   ReqNodeList=(null) ExcNodeList=(null)\n   NodeList=n[1-2]";
  EXPECT_EQ(exclusion_list(shown, {"n1", "n2.cluster.local"}), "n1,n2");
}

TEST(ExclusionList, WhatTheUserHasExcludedStays) {
  EXPECT_EQ(exclusion_list("ExcNodeList=n[7,9] NodeList=n1", {"n1"}), "n[7,9],n1");
  EXPECT_EQ(exclusion_list("ExcNodeList=n7", {"n1"}), "n7,n1");
}

TEST(ExclusionList, AnotherFormOfTheAnswerChangesNothing) {
  EXPECT_EQ(exclusion_list("", {"n1"}), "n1");
  EXPECT_EQ(exclusion_list("ExcNodeList=", {"n1"}), "n1");
}

TEST(JobThatSlurmEnds, IsDistinguishedFromOtherStops) {
  EXPECT_TRUE(is_ended_by_slurm("JobId=7\n   JobState=CANCELLED Reason=None Dependency=(null)\n"));
  EXPECT_TRUE(is_ended_by_slurm("JobId=7\n   JobState=COMPLETING Reason=None Dependency=(null)\n"));
  EXPECT_FALSE(is_ended_by_slurm("JobId=7\n   JobState=RUNNING Reason=None Dependency=(null)\n"));
  EXPECT_FALSE(is_ended_by_slurm("JobId=7\n   JobState=COMPLETING Reason=TimeLimit\n"));
  EXPECT_FALSE(is_ended_by_slurm("JobId=7\n   JobState=COMPLETING Reason=BeginTime\n"));
  EXPECT_FALSE(is_ended_by_slurm("")) << "no answer";
}

}  // namespace
}  // namespace cpprun
