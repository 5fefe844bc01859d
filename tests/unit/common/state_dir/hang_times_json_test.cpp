// The learned times that --state-dir keeps: what is written is read again, and nothing else is
// believed.
#include "common/state_dir/hang_times_json.hpp"

#include <gtest/gtest.h>

#include "common/limits/agent.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

TEST(HangTimesJson, AreReadAsTheyWereWritten) {
  const HangTimes times{{{"training", 2s}}, {{"a 'name'", 3min}, {"\xff", Duration(1)}}};
  const auto read = parse_hang_times(hang_times_json(times));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->phases, times.phases);
  EXPECT_EQ(read->sections.size(), 2u);
  EXPECT_EQ(read->sections.at("a 'name'"), 3min);
}

TEST(HangTimesJson, NothingElseIsBelieved) {
  std::string many;
  for (size_t i = 0; i <= limits::kSectionsKnown; ++i) {
    many += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":1";
  }
  for (const std::string& sections :
       {std::string("[]"), std::string("{\"x\":-1}"), std::string("{\"x\":1.5}"),
        std::string("{\"x\":\"1\"}"), std::string("{\"x\":18446744073709551615}"),
        std::string("{\"x\":9223372036854775807}"), "{" + many + "}"}) {
    const std::string text = R"({"version":1,"phases_ns":{},"sections_ns":)" + sections + "}";
    EXPECT_FALSE(parse_hang_times(text)) << text;
  }
  for (const char* text : {"", "{}", "7", R"({"version":2,"phases_ns":{},"sections_ns":{}})",
                           R"({"version":1,"phases_ns":{}})"}) {
    EXPECT_FALSE(parse_hang_times(text)) << text;
  }
}

}  // namespace
}  // namespace cpprun::test
