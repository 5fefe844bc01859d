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

std::vector<std::string> last(const std::string& path, size_t bytes = 1000) {
  return read_last_lines(path, bytes, LastLines(3, 8));
}

class LastLinesOfFile : public testing::Test {
 public:
  std::vector<std::string> of(const std::string& text, size_t bytes = 1000) {
    std::ofstream(path, std::ios::binary) << text;
    return last(path, bytes);
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
  EXPECT_THAT(last(""), IsEmpty());
  EXPECT_THAT(last(path + "/none"), IsEmpty());
  EXPECT_THAT(last(folder.path()), IsEmpty());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(last(path), IsEmpty());
}

std::vector<std::string> fed(const std::vector<std::string>& parts) {
  LastLines last(3, 8);
  for (const std::string& part : parts) last.feed(part);
  return last.lines();
}

TEST(LastLinesOfStream, AreTheLastOnes) {
  EXPECT_THAT(fed({}), IsEmpty());
  EXPECT_THAT(fed({"a\nb\nc\nd\n"}), ElementsAre("b", "c", "d"));
  EXPECT_THAT(fed({"a\nb", "b\nc\n", "d"}), ElementsAre("bb", "c", "d"));
  EXPECT_THAT(fed({"a\r", "\nb"}), ElementsAre("a", "b"));
}

TEST(LastLinesOfStream, HaveTheBeginningOfALongLine) {
  EXPECT_THAT(fed({"Error: a b\nx", std::string(1 << 20, 'x'), "x\nend"}),
              ElementsAre("Error: a", "xxxxxxxx", "end"));
}

TEST(LastLinesOfStream, HaveTheLastStateOfAProgressBar) {
  EXPECT_THAT(fed({"\r 10%", "\r 20%\r", " 30%\nend"}), ElementsAre(" 30%", "end"));
  EXPECT_THAT(fed({" 10%\r 20%\r"}), ElementsAre(" 20%"));
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
