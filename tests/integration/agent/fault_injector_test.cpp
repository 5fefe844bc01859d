// FaultInjector: requests of workers that are quicker than the start of the others of their round.
#include "agent/daemon/faults/fault_injector.hpp"

#include <gtest/gtest.h>

#include "common/faults/draw.hpp"

namespace cpprun::test {
namespace {

class FaultInjectorTest : public testing::Test {
 protected:
  FaultInjectorTest() {
    Result<faults::Plan> plan = faults::parse_plan(
        R"({"plan": [{"do": "exit", "at": {"rank": 0, "step": 4}, "code": 13}]})", "plan.json");
    config.plan = faults::drawn(std::move(*plan), 1);
    FaultInjector::Callbacks callbacks;
    callbacks.request_permit = [this](const control::FaultPermitRequest& request) {
      sent.push_back(request);
    };
    callbacks.pid_of = [](int) { return std::nullopt; };
    callbacks.step_of = [](int) { return std::nullopt; };
    callbacks.drop_connection = [] {};
    injector.emplace(loop, config, std::move(callbacks));
    injector->on_connected();
  }

  void request() {
    channel::FaultPermitRequest wanted;
    wanted.step = 4;
    injector->on_permit_requested(0, wanted, [this](bool given) { answers.push_back(given); });
  }

  boost::asio::io_context loop;
  FaultConfig config;
  std::vector<control::FaultPermitRequest> sent;
  std::vector<bool> answers;
  std::optional<FaultInjector> injector;
};

TEST_F(FaultInjectorTest, RequestBeforeAllWorkersRunWaitsForThem) {
  request();
  EXPECT_TRUE(sent.empty());
  EXPECT_TRUE(answers.empty());
  control::RankAssignment assignment;
  assignment.round = RoundNumber{1};
  injector->on_started(assignment, 2);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].where, "rank 0 in round 1, step 4");
  control::FaultPermit permit{0, 1, true};
  permit.is_answer = true;
  injector->on_message(permit);
  EXPECT_EQ(answers, std::vector{true});
}

TEST_F(FaultInjectorTest, RequestOfARoundThatDoesNotBeginIsRefused) {
  request();
  injector->on_stopped();
  EXPECT_EQ(answers, std::vector{false});
  EXPECT_TRUE(sent.empty());
}

}  // namespace
}  // namespace cpprun::test
