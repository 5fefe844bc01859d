// `logs --since`: times on the command line, times in lines, and the search for the first newer
// line of a file.
#include "launcher/cpprunctl/logs/time_spec.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <fstream>

#include "tests/support/temp_folder.hpp"

namespace cpprun::ctl {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kNoon = 1'795'694'400 * kSecond;  // 2026-11-26T12:00:00Z

// Three hours east of Greenwich, independent of the machine's time zone.
class TimeSpecTest : public testing::Test {
 public:
  TimeSpecTest() {
    ::setenv("TZ", "EAT-3", 1);
    ::tzset();
  }
  ~TimeSpecTest() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  static int64_t when(const char* words) {
    const Result<int64_t> at = parse_since(words, kNoon);
    EXPECT_TRUE(at) << words;
    return at ? *at : -1;
  }
};

TEST_F(TimeSpecTest, DurationsCountBackFromNow) {
  EXPECT_EQ(when("30s"), kNoon - 30 * kSecond);
  EXPECT_EQ(when("5m"), kNoon - 300 * kSecond);
  EXPECT_EQ(when("1.5h"), kNoon - 5400 * kSecond);
  EXPECT_EQ(when("2d"), kNoon - 172'800 * kSecond);
  EXPECT_EQ(when("0s"), kNoon);
}

TEST_F(TimeSpecTest, DatesUseTheirZoneOrTheMachines) {
  EXPECT_EQ(when("2026-11-26T12:00:00Z"), kNoon);
  EXPECT_EQ(when("2026-11-26 14:00:00+02:00"), kNoon);
  EXPECT_EQ(when("2026-11-26T15:00"), kNoon);
  EXPECT_EQ(when("2026-11-26T11:59:59.250Z"), kNoon - 750'000);
}

TEST_F(TimeSpecTest, ATimeOfDayIsItsLastOccurrence) {
  EXPECT_EQ(when("14:30"), kNoon - 1800 * kSecond);
  EXPECT_EQ(when("15:00:01"), kNoon + kSecond - 86'400 * kSecond);
}

TEST_F(TimeSpecTest, RejectsInvalidTimesAndShowsTheFormats) {
  for (const char* words : {"", "soon", "5", "m", "-5m", "5 minutes", "25:00", "2026-13-01T00:00",
                            "2026-11-26", "2026-11-26T12:00:00Zx", "1e9s", "nan s"}) {
    const Result<int64_t> at = parse_since(words, kNoon);
    ASSERT_FALSE(at) << words;
    EXPECT_NE(at.error().text.find("30s, 5m, 2h, 1d"), std::string::npos);
  }
}

TEST_F(TimeSpecTest, ParsesTimestampsOfManyFormats) {
  EXPECT_EQ(stamp_of("2026-11-26 15:00:00,500 - root - INFO - step"), kNoon + 500'000);
  EXPECT_EQ(stamp_of("[rank3]: [2026-11-26T12:00:00Z] x"), kNoon);
  EXPECT_EQ(stamp_of(R"({"level":"info","ts":"2026-11-26T12:00:00.000Z"})"), kNoon);
  EXPECT_EQ(stamp_of("step 12, loss 0.3"), std::nullopt);
  EXPECT_EQ(stamp_of("12026-11-26 15:00:00"), std::nullopt) << "that is no year";
  std::string late(70, ' ');
  late += "2026-11-26 15:00:00";
  EXPECT_EQ(stamp_of(late), std::nullopt) << "of the text";
  EXPECT_EQ(stamp_of(""), std::nullopt);
}

class LogLinesSince : public TimeSpecTest {
 public:
  std::optional<int64_t> behind(const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    std::ifstream file(path, std::ios::binary);
    return behind_older(file, kNoon);
  }
  const test::TempFolder folder;
  const std::string path = folder.path() + "/log";
};

TEST_F(LogLinesSince, ALineWithoutATimeBelongsToTheLineBefore) {
  const std::string old = "2026-11-26 14:59:59 old\n";
  EXPECT_EQ(behind(old + "2026-11-26 15:00:00 new\n"), old.size());
  EXPECT_EQ(behind(old + "it may be newer\n2026-11-26 15:00:00 new\n"), old.size());
  EXPECT_EQ(behind(old), old.size());
  EXPECT_EQ(behind(old + old), 2 * old.size());
  EXPECT_EQ(behind("begins\n2026-11-26 15:00:01 new\n"), 0);
  EXPECT_EQ(behind("2026-11-26 14:59:59 cut of"), 26);
}

TEST_F(LogLinesSince, WithoutTimesTheAgeIsUnknown) {
  EXPECT_EQ(behind("step 1\nstep 2\n"), std::nullopt);
  EXPECT_EQ(behind(""), std::nullopt);
  EXPECT_EQ(behind("\n\n"), std::nullopt);
}

TEST_F(LogLinesSince, ReadsLargeFilesFromTheirEnd) {
  const std::string old = "2026-11-26 14:00:00 old\n";
  const std::string now = "2026-11-26 15:30:00 " + std::string(70'000, 'x') + "\n";
  std::string many;
  for (int i = 0; i < 20; ++i) many += now;
  EXPECT_EQ(behind(old + many), old.size());
  EXPECT_EQ(behind(many), 0);
  const std::string long_line(900'000, 'y');
  EXPECT_EQ(behind(old + long_line + "\n" + now), old.size());
  EXPECT_EQ(behind(old + long_line), old.size());
}

}  // namespace
}  // namespace cpprun::ctl
