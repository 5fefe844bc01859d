#include "rendezvous/coordinator/fault_quota.hpp"
#include "common/limits/faults.hpp"

#include <gtest/gtest.h>

#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun {
namespace {

TEST(FaultQuota, AFaultHappensAtMostItsCount) {
  FaultQuota fault_counts;
  EXPECT_EQ(fault_counts.claim(3, 2), 1);
  EXPECT_EQ(fault_counts.claim(3, 2), 2);
  EXPECT_EQ(fault_counts.claim(3, 2), std::nullopt);
  EXPECT_EQ(fault_counts.claim(0, 1), 1);
}

TEST(FaultQuota, CountsFaultsReportedByAgents) {
  FaultQuota fault_counts;
  fault_counts.learn({0, 1});
  fault_counts.learn({0, 0, 5});
  EXPECT_EQ(fault_counts.claim(1, 1), std::nullopt);
  EXPECT_EQ(fault_counts.claim(2, 6), 6);
  EXPECT_EQ(fault_counts.claim(0, 1), 1);
}

TEST(FaultQuota, RejectsNumbersOutsideThePlan) {
  FaultQuota fault_counts;
  for (int64_t fault : {int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{limits::kFaultsPerPlan}}) {
    EXPECT_EQ(fault_counts.claim(fault, 1), std::nullopt) << fault;
  }
  EXPECT_EQ(fault_counts.claim(0, 0), std::nullopt);
  EXPECT_EQ(fault_counts.claim(0, -1), std::nullopt);
}

class JobFaultPermits : public test::JobTest {
 protected:
  // The faults that it learned since the last call.
  std::vector<control::FaultPermit> new_permits(const std::string& name) {
    std::vector<control::FaultPermit> all;
    for (const control::CoordinatorMessage& message : player(name).received) {
      if (const auto* permit = std::get_if<control::FaultPermit>(&message)) all.push_back(*permit);
    }
    player(name).received.clear();
    return all;
  }
};

TEST_F(JobFaultPermits, OneOfTwoRequestsIsGrantedAndBothAgentsLearnIt) {
  nodes(2, 2);
  a_and_b_run();
  new_permits("a");
  new_permits("b");
  sends("a", control::FaultPermitRequest{0, 1, "rank 1", 7, 2});
  sends("b", control::FaultPermitRequest{0, 1, "rank 3", 7, 2});
  const auto a = new_permits("a"), b = new_permits("b");
  ASSERT_EQ(a.size(), 1U);
  EXPECT_TRUE(a[0].is_permitted && a[0].is_answer);
  EXPECT_EQ(a[0].where, "rank 1");
  EXPECT_EQ(a[0].step, 7);
  ASSERT_EQ(b.size(), 2U);
  EXPECT_TRUE(b[0].is_permitted && !b[0].is_answer);
  EXPECT_TRUE(!b[1].is_permitted && b[1].is_answer);
}

TEST_F(JobFaultPermits, TheOtherAgentsLearnOfAFaultBeforeItHappens) {
  nodes(2, 2);
  a_and_b_run();
  int64_t fault = 0;
  for (const char* asker : {"a", "b"}) {
    const SessionId asking = *player(asker).session;
    Effects effects;
    core.on_message(now, asking, control::FaultPermitRequest{fault++, 1, "", -1, -1}, effects);
    std::vector<SessionId> sent_to;
    for (const Effect& effect : effects) {
      if (const auto* sent = std::get_if<Send>(&effect)) sent_to.push_back(sent->session);
    }
    ASSERT_EQ(sent_to.size(), 2U);
    EXPECT_TRUE(sent_to.back() == asking) << asker;
  }
}

TEST_F(JobFaultPermits, ARegisteringAgentReportsKnownFaults) {
  nodes(1, 1);
  player("a").facts.fault_counts = {0, 1};
  join("a");
  new_permits("a");
  sends("a", control::FaultPermitRequest{1, 1, "", -1, -1});
  sends("a", control::FaultPermitRequest{0, 1, "", -1, -1});
  const auto a = new_permits("a");
  ASSERT_EQ(a.size(), 2U);
  EXPECT_FALSE(a[0].is_permitted);
  EXPECT_TRUE(a[1].is_permitted);
}

}  // namespace
}  // namespace cpprun
