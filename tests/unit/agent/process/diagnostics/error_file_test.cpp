#include "agent/process/diagnostics/error_file.hpp"

#include <gtest/gtest.h>

#include "common/limits/agent.hpp"

namespace cpprun {
namespace {

ErrorReport parse(std::string_view bytes) { return parse_error_file("/log/error.json", bytes); }

TEST(ErrorFile, NestedForm) {
  const ErrorReport report =
      parse(R"({"message": {"message": "ValueError: x",)"
            R"("extraInfo": {"py_callstack": "Traceback", "timestamp": "1700000000"}}})");
  EXPECT_TRUE(report.is_readable);
  EXPECT_EQ(report.path, "/log/error.json");
  EXPECT_EQ(report.message, "ValueError: x");
  EXPECT_EQ(report.traceback, "Traceback");
  EXPECT_EQ(report.stamp, WallTime{1'700'000'000'000'000});
}

TEST(ErrorFile, ReportsALostPeer) {
  const char* text = R"({"message": {"message": "x", "extraInfo": {"consequence_of": "peer"}}})";
  EXPECT_TRUE(parse(text).is_consequence);
  EXPECT_FALSE(parse(R"({"message": {"message": "x", "extraInfo": {}}})").is_consequence);
}

TEST(ErrorFile, PlainForm) {
  EXPECT_EQ(parse(R"({"message": "short"})").message, "short");
  EXPECT_FALSE(parse(R"({"message": "short"})").stamp.has_value());
  EXPECT_EQ(parse(R"({"message": "short", "timestamp": 12.5})").stamp, WallTime{12'500'000});
  EXPECT_TRUE(parse(R"({"message": ""})").is_readable);
  EXPECT_EQ(parse(R"({"message": 7})").message, "7");
}

TEST(ErrorFile, AcceptsMissingAndUnexpectedFields) {
  EXPECT_EQ(parse(R"({"message": {}})").message, "");
  EXPECT_EQ(parse(R"({"message": {"message": ["a", 1]}})").message, R"(["a",1])");
  EXPECT_FALSE(parse(R"({"message": {"extraInfo": {"timestamp": "soon"}}})").stamp.has_value());
  EXPECT_FALSE(parse(R"({"message": "x", "timestamp": 1e300})").stamp.has_value());
  EXPECT_FALSE(parse(R"({"message": "x", "timestamp": -1})").stamp.has_value());
  EXPECT_TRUE(parse(R"({"message": {"extraInfo": 3}})").is_readable);
}

TEST(ErrorFile, ReportsBrokenFilesWithoutThrowing) {
  const std::string deep = R"({"message": )" + std::string(100'000, '[');
  const std::string deep_and_whole =
      R"({"message": )" + std::string(500, '[') + std::string(500, ']') + "}";
  const std::string large(limits::kErrorFileBytes + 1, ' ');
  for (const std::string& bytes :
       {std::string(), std::string("{"), std::string("nonsense"), std::string("[]"),
        std::string("{}"), std::string("\xff\xfe"), deep, deep_and_whole, large}) {
    const ErrorReport report = parse(bytes);
    EXPECT_FALSE(report.is_readable);
    EXPECT_TRUE(report.message.starts_with("the error file could not be read: ")) << report.message;
  }
}

}  // namespace
}  // namespace cpprun
