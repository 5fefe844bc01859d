// Events as lines for people. A worker may write anything into the file.
#include "launcher/report/event_text.hpp"

#include <gtest/gtest.h>

namespace cpprun::ctl {
namespace {

// An event with a field that holds arrays in arrays.
std::string nested(size_t depth) {
  return R"({"event":"other","round":1,"field":)" + std::string(depth, '[') +
         std::string(depth, ']') + "}";
}

TEST(EventText, ShowsTheFieldsOfAnUnknownEvent) {
  const auto text = event_text(nested(2));
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("other: round=1 field=[[]]"), std::string::npos) << *text;
}

TEST(EventText, ALineThatIsNestedTooDeeplyIsNoEvent) {
  const std::string line = nested(1 << 20);
  EXPECT_FALSE(event_text(line));
  EXPECT_FALSE(round_event(line));
  RunSummary run;
  run.take(line);
  EXPECT_EQ(run.run_id, "");
}

}  // namespace
}  // namespace cpprun::ctl
