// The line on which who leads a job that moved says so at the job's endpoint (R17).
#include "rendezvous/client/core/herald_core.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using Do = HeraldCore::Do;

constexpr auto kTells = limits::kHelloTimeout / limits::kTellEndpoint;

TEST(HeraldCore, WithoutALineNothingIsSaid) {
  HeraldCore core;
  EXPECT_EQ(core.on_time(), Do::Nothing);
  core.on_answer();  // a last word of a line that has ended
  EXPECT_EQ(core.on_time(), Do::Nothing);
}

TEST(HeraldCore, WhoAnswersIsToldAgainAndAgain) {
  HeraldCore core;
  core.on_connected();
  for (int i = 0; i < 100; ++i) {
    core.on_answer();
    EXPECT_EQ(core.on_time(), Do::Say);
  }
}

TEST(HeraldCore, ALineOnWhichNobodyAnswersIsGivenUp) {
  HeraldCore core;
  core.on_connected();
  core.on_answer();
  for (int i = 0; i < kTells; ++i) EXPECT_EQ(core.on_time(), Do::Say);
  EXPECT_EQ(core.on_time(), Do::DialAgain);
  EXPECT_EQ(core.on_time(), Do::Nothing) << "until there is a line again";
  core.on_connected();
  EXPECT_EQ(core.on_time(), Do::Say);
}

TEST(HeraldCore, ALineThatEndedIsNotSpokenOn) {
  HeraldCore core;
  core.on_connected();
  core.on_ended();
  EXPECT_EQ(core.on_time(), Do::Nothing);
}

}  // namespace
}  // namespace cpprun::test
