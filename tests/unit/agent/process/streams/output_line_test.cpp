#include <gtest/gtest.h>

#include "agent/process/streams/line_splitter.hpp"
#include "agent/process/streams/progress_bars.hpp"
#include "common/limits/agent.hpp"

namespace cpprun {
namespace {

// The whole output, with marks between the parts.
class Cut {
 public:
  void feed(std::string_view bytes) {
    splitter_.feed(
        bytes, [this](std::string_view lines) { out_ += lines; },
        [this](std::string_view part) { out_ += "<" + std::string(part) + ">"; });
  }
  std::string take() { return std::exchange(out_, {}); }
  LineSplitter splitter_;

 private:
  std::string out_;
};

TEST(LineSplitter, PassesWholeLinesAndHoldsTheRest) {
  Cut cut;
  cut.feed("one\ntwo\nthr");
  EXPECT_EQ(cut.take(), "one\ntwo\n");
  EXPECT_TRUE(cut.splitter_.has_part());
  cut.feed("ee\nfour\n");
  EXPECT_EQ(cut.take(), "three\nfour\n");
  EXPECT_FALSE(cut.splitter_.has_part());
}

TEST(LineSplitter, ShowsAProgressBarLineWhenTheNextOneBegins) {
  Cut cut;
  cut.feed("\r 10%");
  EXPECT_EQ(cut.splitter_.take_progress_bars(), "\r");
  cut.feed("\r 20%\r 30%");
  EXPECT_EQ(cut.splitter_.take_progress_bars(), " 10%\r 20%\r");
  cut.feed("\r");
  EXPECT_EQ(cut.splitter_.take_progress_bars(), "") << "a newline may follow";
  cut.feed("\n");
  EXPECT_EQ(cut.take(), " 30%\r\n");
}

TEST(LineSplitter, AnyCutGivesTheSameText) {
  const std::string text = "a\n\nbb\r\nlong line here\n\n\nlast without end";
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      Cut cut;
      cut.feed(std::string_view(text).substr(0, first));
      cut.feed(std::string_view(text).substr(first, second - first));
      cut.feed(std::string_view(text).substr(second));
      EXPECT_EQ(cut.take() + cut.splitter_.take_part(), text);
    }
  }
}

TEST(LineSplitter, SplitsLongLines) {
  Cut cut;
  const std::string piece(limits::kLineBytes, 'x');
  cut.feed(piece + piece + "rest");
  EXPECT_EQ(cut.take(), "<" + piece + "><" + piece + ">");
  cut.feed("\n");
  EXPECT_EQ(cut.take(), "rest\n");
}

TEST(StatesToLines, EachStateIsALineHoweverTheTextIsCut) {
  const std::string text = "begin\n\r 10%\r 20%\r\rend\r\n\r\n\r 30%\n";
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      StatesToLines lines;
      std::string out(lines.feed(std::string_view(text).substr(0, first)));
      out += lines.feed(std::string_view(text).substr(first, second - first));
      out += lines.feed(std::string_view(text).substr(second));
      EXPECT_EQ(out, "begin\n 10%\n 20%\nend\n\n 30%\n") << first << " " << second;
    }
  }
}

TEST(ProgressBars, EachStateOnATerminalHasThePrefix) {
  EXPECT_EQ(with_prefix_of_states("\r 10%\r 20%\r", "[0]:"), "\r[0]: 10%\r[0]: 20%\r[0]:");
  EXPECT_EQ(with_prefix_of_states("one\r\ntwo\n", "[0]:"), "one\r\ntwo\n");
}

}  // namespace
}  // namespace cpprun
