// The goodput that --state-dir keeps: what is written is read again, and nothing else is believed.
#include "common/state_dir/goodput_json.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

GoodputRecord three_submissions() {
  GoodputRecord record;
  record.earlier.submissions = 2;
  record.earlier.failures = 4;
  record.earlier.restarts = 3;
  record.earlier[GoodputPhase::Training] = 6h + Duration(1);
  record.newest[GoodputPhase::Waiting] = 12s;
  record.submission = "3f2a";
  record.best_step = 41;
  return record;
}

TEST(GoodputJson, IsReadAsItWasWritten) {
  const GoodputRecord record = three_submissions();
  const auto read = parse_goodput_record(goodput_record_json(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->earlier, record.earlier);
  EXPECT_EQ(read->newest, record.newest);
  EXPECT_EQ(read->submission, "3f2a");
  EXPECT_EQ(read->best_step, 41);
}

TEST(GoodputJson, NothingElseIsBelieved) {
  const std::string good = goodput_record_json(three_submissions());
  const auto with = [&](const std::string& from, const std::string& to) {
    const size_t at = good.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return good.substr(0, at) + to + good.substr(at + from.size());
  };
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), good.substr(0, good.size() / 2),
        with("\"version\": 1", "\"version\": 2"), with("\"submissions\": 2", "\"submissions\": -1"),
        with("12000000000", "-5"), with("12000000000", "9223372036854775807"),
        with("12000000000", "1.5"), with("\"3f2a\"", "7"), with("\"earlier\"", "\"other\""),
        with("41", "99999999999999999999"), with("\"spent_ns\"", "\"spent\"")}) {
    EXPECT_FALSE(parse_goodput_record(text)) << text;
  }
}

}  // namespace
}  // namespace cpprun::test
