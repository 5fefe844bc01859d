// The last lines of a log file, which an agent sends to the dashboard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "agent/daemon/services/log_tail_reporter.hpp"
#include "common/limits/dashboard.hpp"
#include "tests/support/temp_folder.hpp"

namespace cpprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TailLines : public testing::Test {
 public:
  std::vector<std::string> of(const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return last_lines_of(path);
  }
  const test::TempFolder folder;
  const std::string path = folder.path() + "/log";
};

TEST_F(TailLines, KeepTheirOrderWithAndWithoutNewline) {
  EXPECT_THAT(of("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(of("a\n\nhalf"), ElementsAre("a", "", "half"));
  EXPECT_THAT(of("\n"), ElementsAre(""));
  EXPECT_THAT(of(""), IsEmpty());
}

TEST_F(TailLines, AreLimitedInNumberAndLength) {
  std::string many;
  for (int i = 0; i < 200; ++i) many += "line " + std::to_string(i) + "\n";
  const std::vector<std::string> lines = of(many);
  ASSERT_EQ(lines.size(), limits::kTailLines);
  EXPECT_EQ(lines.front(), "line 150");
  EXPECT_EQ(lines.back(), "line 199");
  std::string wide(1 << 20, 'x');
  wide += "\nend\n";
  EXPECT_THAT(of(wide), ElementsAre(std::string(limits::kLineBytesReported, 'x'), "end"));
}

TEST_F(TailLines, AreEmptyWithoutAFile) {
  EXPECT_THAT(last_lines_of(""), IsEmpty());
  EXPECT_THAT(last_lines_of(path + "/none"), IsEmpty());
  EXPECT_THAT(last_lines_of(folder.path()), IsEmpty());
}

}  // namespace
}  // namespace cpprun
