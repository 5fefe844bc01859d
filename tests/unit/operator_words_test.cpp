#include "agent/core/operator_words.hpp"

#include <gtest/gtest.h>

#include "common/limits/operators.hpp"

namespace cpprun::operators {
namespace {

using namespace std::chrono_literals;

TEST(OperatorWords, AQuestionComesThroughWhole) {
  const Question asked{"signal", {{"rank", "3"}, {"signal", "10"}, {"odd", "\"}\n\\ \xff"}}};
  const Result<Question> heard = decode_question(encode(asked));
  ASSERT_TRUE(heard.ok()) << heard.error().text;
  EXPECT_EQ(heard->verb, "signal");
  EXPECT_EQ(heard->number("rank"), 3);
  EXPECT_EQ(heard->number("odd"), std::nullopt);
  EXPECT_EQ(heard->number("none"), std::nullopt);
  EXPECT_EQ(heard->word("none"), "");
  EXPECT_FALSE(heard->words.contains("verb"));
}

TEST(OperatorWords, AnythingButAFlatObjectOfTextsIsRefused) {
  std::string many = "{\"verb\":\"x\"";
  for (size_t i = 0; i < limits::kOperatorWords; ++i) many += ",\"" + std::to_string(i) + "\":\"\"";
  const std::string bodies[] = {
      "",
      "{}",
      "[]",
      "7",
      "{\"verb\":7}",
      "{\"verb\":\"\"}",
      "{\"verb\":\"x\",\"a\":{}}",
      "{\"verb\":\"x\",\"a\":[\"b\"]}",
      "{\"verb\":\"x\",\"a\":null}",
      "{\"verb\":\"x\"} more",
      "{\"verb\":\"x\",\"a\":\"" + std::string(limits::kOperatorWordBytes + 1, 'y') + "\"}",
      many + "}",
      std::string(60'000, '['),
      "{\"verb\":" + std::string(60'000, '[')};
  for (const std::string& body : bodies) {
    const Result<Question> heard = decode_question(body);
    ASSERT_FALSE(heard.ok()) << body.substr(0, 80);
    EXPECT_EQ(heard.error().kind, ErrorKind::Protocol);
  }
}

TEST(OperatorWords, ARefusalIsToldFromAnAnswer) {
  EXPECT_EQ(why_refused(refusal("no such \"rank\"")), "no such \"rank\"");
  EXPECT_EQ(why_refused(done("sent")), std::nullopt);
  EXPECT_EQ(why_refused(encode(NodeView{})), std::nullopt);
}

TEST(OperatorWords, AFrameSaysItsLength) {
  const std::string frame = framed(std::string(300, 'x'));
  ASSERT_EQ(frame.size(), 304u);
  EXPECT_EQ(frame_length(frame.substr(0, 4), 1000), 300u);
  EXPECT_EQ(frame_length(frame.substr(0, 4), 299), std::nullopt);
  EXPECT_EQ(frame_length(std::string(4, '\0'), 1000), std::nullopt);
  EXPECT_EQ(frame_length("\xff\xff\xff\xff", limits::kOperatorAnswerBytes), std::nullopt);
}

}  // namespace
}  // namespace cpprun::operators
