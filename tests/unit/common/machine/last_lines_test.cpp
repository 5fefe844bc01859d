// The last lines of a text and of a log file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "common/machine/last_lines.hpp"
#include "tests/support/temp_folder.hpp"

namespace cpprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LastLinesOfFile : public testing::Test {
 public:
  std::vector<std::string> of(const std::string& text, size_t bytes = 1000) {
    std::ofstream(path, std::ios::binary) << text;
    return read_last_lines(path, 3, bytes);
  }
  const test::TempFolder folder;
  const std::string path = folder.path() + "/log";
};

TEST_F(LastLinesOfFile, KeepTheirOrderWithAndWithoutNewline) {
  EXPECT_THAT(of("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(of("a\n\nhalf"), ElementsAre("a", "", "half"));
  EXPECT_THAT(of(""), IsEmpty());
}

TEST_F(LastLinesOfFile, AreLimitedInNumberAndBytes) {
  EXPECT_THAT(of("a\nb\nc\nd\n"), ElementsAre("b", "c", "d"));
  EXPECT_THAT(of(std::string(1 << 20, 'x') + "\nend\n", 10), ElementsAre("xxxxx", "end"));
}

TEST_F(LastLinesOfFile, AreEmptyWithoutARegularFile) {
  EXPECT_THAT(read_last_lines("", 3, 1000), IsEmpty());
  EXPECT_THAT(read_last_lines(path + "/none", 3, 1000), IsEmpty());
  EXPECT_THAT(read_last_lines(folder.path(), 3, 1000), IsEmpty());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(read_last_lines(path, 3, 1000), IsEmpty());
}

TEST(LastLinesOfText, BeginAtAnOffset) {
  EXPECT_EQ(last_lines_at("a\nb\nc\n", 2), 2u);
  EXPECT_EQ(last_lines_at("a\nb\nc", 2), 2u);
  EXPECT_EQ(last_lines_at("a\nb\n", 9), 0u);
  EXPECT_EQ(last_lines_at("a\n\n", 1), 2u);
  EXPECT_EQ(last_lines_at("a\n", 0), 2u);
  EXPECT_EQ(last_lines_at("", 3), 0u);
}

}  // namespace
}  // namespace cpprun
