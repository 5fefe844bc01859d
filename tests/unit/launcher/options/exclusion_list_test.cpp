// ExcNodeList of a requeued Slurm job: what it has already, and the hosts that the job has
// excluded.
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

}  // namespace
}  // namespace cpprun
