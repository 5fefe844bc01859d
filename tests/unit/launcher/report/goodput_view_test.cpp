// What `cpprunctl goodput` shows of an event, and of files that hold something else.
#include "launcher/report/goodput_view.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using ctl::goodput_text;
using ctl::goodput_view;

constexpr const char* kEvent =
    R"({"event":"goodput","node":"n0","spent_ms":{"waiting":1000,"training":9000,"later":5},)"
    R"("failures":2,"restarts":3,"best_step":41})";

TEST(GoodputView, ShowsEachPhaseThatHasTime) {
  const auto view = goodput_view(kEvent);
  ASSERT_TRUE(view);
  const std::string text = goodput_text(*view, true);
  EXPECT_NE(text.find("waiting   1.0 s   10.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("training  9.0 s   90.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("total     10.0 s  100.0 %"), std::string::npos) << text;
  EXPECT_EQ(text.find("hanging"), std::string::npos);
  EXPECT_TRUE(
      text.ends_with("trained 90.0 % of 10.0 s; lost: 1.0 s waiting for nodes\n"
                     "as n0 sees it; failures 2, restarts 3; last step 41; the job runs\n"))
      << text;
}

TEST(GoodputView, AYearOfTrainingFits) {
  const auto view = goodput_view(R"({"event":"goodput","spent_ms":{"training":31536000000}})");
  ASSERT_TRUE(view);
  EXPECT_EQ(long_duration_text(view->goodput.total()), "365 d");
  EXPECT_EQ(goodput_text(*view, false).find("last step"), std::string::npos);
}

TEST(GoodputView, TakesNothingElse) {
  for (const char* line :
       {"", "x", "[]", "{}", R"({"event":"timing","spent_ms":{}})", R"({"event":"goodput"})",
        R"({"event":"goodput","spent_ms":[1]})", R"({"event":7,"spent_ms":{}})"}) {
    EXPECT_FALSE(goodput_view(line)) << line;
  }
}

TEST(GoodputView, NumbersOfAnyKindAreHarmless) {
  const auto view = goodput_view(
      R"({"event":"goodput","node":7,"spent_ms":{"training":1e300,"waiting":-5,"saving":"x",)"
      R"("redone":1e300,"stopping":1e300},"failures":1e300,"best_step":1.5})");
  ASSERT_TRUE(view);
  EXPECT_GT(view->goodput.total(), Duration{});
  EXPECT_EQ(view->goodput[GoodputPhase::Waiting], Duration{});
  EXPECT_EQ(view->best_step, -1);
}

TEST(GoodputView, ShowsThisSubmissionBesideAll) {
  const auto view = goodput_view(
      R"({"event":"goodput","node":"n0","spent_ms":{"waiting":1000,"training":9000},)"
      R"("submissions":2,"this_submission":{"spent_ms":{"training":4000},"failures":1}})");
  ASSERT_TRUE(view);
  const std::string text = goodput_text(*view, false);
  EXPECT_NE(text.find("PHASE     TIME    SHARE    THIS SUBMISSION  SHARE"), std::string::npos)
      << text;
  EXPECT_NE(text.find("waiting   1.0 s   10.0 %   0.0 s            0.0 %"), std::string::npos)
      << text;
  EXPECT_NE(text.find("training  9.0 s   90.0 %   4.0 s            100.0 %"), std::string::npos)
      << text;
  EXPECT_NE(text.find("trained 90.0 % of 10.0 s in 2 submissions"), std::string::npos) << text;
  for (const char* own : {"7", "[]", R"({"spent_ms":3})"}) {
    EXPECT_TRUE(goodput_view(R"({"event":"goodput","spent_ms":{},"submissions":"x",)"
                             R"("this_submission":)" +
                             std::string(own) + "}"))
        << own;
  }
}

}  // namespace
}  // namespace cpprun::test
