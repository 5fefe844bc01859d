// The parts of an error report: its JSON, parsed by the launcher's own reader, and the texts of
// exceptions.
#include <gtest/gtest.h>

#include <stdexcept>
#include <system_error>

#include "agent/process/diagnostics/error_file.hpp"
#include "cpprun/worker/error_file.hpp"
#include "cpprun/worker/internal/error_json.hpp"
#include "cpprun/worker/internal/exception_text.hpp"

namespace cpprun::worker {
namespace {

std::string json_of(const ErrorText& text) {
  std::string memory(kErrorJsonBytes, 0);
  FixedText json(memory.data(), memory.size());
  put_error_json(json, text, 1'700'000'000);
  return std::string(json.view());
}

ErrorReport read_back(const ErrorText& text) {
  return parse_error_file("/log/error.json", json_of(text));
}

TEST(WorkerReport, TheLauncherReadsTheWrittenFile) {
  const ErrorReport report = read_back({.message = "Own: \"no\"\n\tdata", .stack = "  #0 main\n"});
  EXPECT_TRUE(report.is_readable);
  EXPECT_EQ(report.message, "Own: \"no\"\n\tdata");
  EXPECT_EQ(report.traceback, "Own: \"no\"\n\tdata\n  #0 main\n");
  EXPECT_EQ(report.stamp, WallTime{1'700'000'000'000'000});
}

TEST(WorkerReport, TheFormatIsTorchelastics) {
  EXPECT_EQ(json_of({.message = "Own: x"}),
            R"({"message": {"message": "Own: x", "extraInfo": {"py_callstack": "Own: x", )"
            R"("timestamp": "1700000000"}}})"
            "\n");
}

TEST(WorkerReport, ALostPeerReachesTheLauncher) {
  EXPECT_TRUE(read_back({.message = "x", .is_consequence = true}).is_consequence);
  EXPECT_FALSE(read_back({.message = "x"}).is_consequence);
}

// torchrun's agent itself fails if the file is no JSON in the locale's encoding.
TEST(WorkerReport, TheFileIsAscii) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  const std::string json = json_of({.message = every, .stack = every});
  for (const char c : json) ASSERT_TRUE(c == '\n' || (c >= ' ' && c < 0x7F)) << int{c};
  const ErrorReport report = parse_error_file("/log/error.json", json);
  EXPECT_TRUE(report.is_readable) << report.message;
  EXPECT_EQ(report.message.substr(0, 128), every.substr(0, 128));
}

TEST(WorkerReport, KeepsCharactersOfEveryLength) {
  const std::string text = "\xC3\xB6 \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF";
  EXPECT_EQ(read_back({.message = text}).message, text);
}

TEST(WorkerReport, ReplacesInvalidUtf8) {
  const auto shown = [](std::string_view text) { return read_back({.message = text}).message; };
  const std::string bad = "\xEF\xBF\xBD";  // U+FFFD
  EXPECT_EQ(shown("a\x80z"), "a" + bad + "z");
  EXPECT_EQ(shown("\xC0\x80"), bad + bad);                      // an overlong zero
  EXPECT_EQ(shown("\xE0\x80\x80"), bad + bad + bad);            // another
  EXPECT_EQ(shown("\xED\xA0\x80"), bad + bad + bad);            // half of a pair
  EXPECT_EQ(shown("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // beyond Unicode
  EXPECT_EQ(shown("\xE2\x82"), bad + bad);                      // cut off
}

TEST(WorkerReport, TheLargestTextsFit) {
  const std::string much(kMessageBytes + 1, '\x01');  // six bytes each
  const std::string stack(kStackBytes + 1, '\x01');
  const ErrorReport report = read_back({.message = much, .stack = stack, .is_consequence = true});
  EXPECT_TRUE(report.is_readable) << report.message;
  EXPECT_EQ(report.message.size(), kMessageBytes + 3);
  EXPECT_TRUE(report.message.ends_with("\x01..."));
}

TEST(WorkerReport, MemoryIsNeverOverrun) {
  char memory[8] = "1234567";
  FixedText text(memory, 4);
  text.put("abc").put_number(123456).put_json("xyz", 1).put_hex(0);
  EXPECT_EQ(text.view(), "abc1");
  EXPECT_EQ(std::string_view(memory + 4), "567");
}

TEST(WorkerReport, NumbersOfAllSizes) {
  char memory[64];
  FixedText text(memory, sizeof memory);
  text.put_number(0).put(" ").put_number(UINT64_MAX).put(" ").put_hex(UINT64_MAX);
  EXPECT_EQ(text.view(), "0 18446744073709551615 0xffffffffffffffff");
}

template <class Throw>
ExceptionText describe(Throw&& throws) {
  try {
    throws();
  } catch (...) {
    return describe_exception(std::current_exception());
  }
  return {"nothing was thrown", ""};
}

TEST(WorkerReport, ReportsTypeAndTextOfAnException) {
  EXPECT_EQ(describe([] { throw std::runtime_error("no data"); }).message,
            "std::runtime_error: no data");
  EXPECT_EQ(describe([] { throw 42; }).message, "int");
  EXPECT_EQ(describe([] { throw "text"; }).message, "const char*: text");
  EXPECT_EQ(describe([] { throw std::string("text"); }).message, "std::string: text");
}

void fail_inside() {
  try {
    try {
      throw std::out_of_range("index 3");
    } catch (...) {
      std::throw_with_nested(std::logic_error("batch 1"));
    }
  } catch (...) {
    std::throw_with_nested(std::runtime_error("epoch 7"));
  }
}

TEST(WorkerReport, ReportsAllNestedExceptions) {
  EXPECT_EQ(describe(fail_inside).message,
            "std::runtime_error: epoch 7\n  caused by std::logic_error: batch 1\n  caused by "
            "std::out_of_range: index 3");
}

TEST(WorkerReport, SeparatesTheStackFromATextOfLibTorch) {
  const ExceptionText text = describe([] {
    throw std::runtime_error("shape [2] is no [3]\nException raised from f at g.cpp:1\nframe #0");
  });
  EXPECT_EQ(text.message, "std::runtime_error: shape [2] is no [3]");
  EXPECT_EQ(text.stack, "Exception raised from f at g.cpp:1\nframe #0");
}

TEST(WorkerReport, RecognizesALostPeer) {
  EXPECT_TRUE(is_peer_loss("[../pair.cc:534] Connection closed by peer [127.0.0.1]:33"));
  EXPECT_TRUE(is_peer_loss("Read error [127.0.0.1]:33: Connection reset by peer"));
  EXPECT_TRUE(is_peer_loss("writev [127.0.0.1]:33: Broken pipe"));
  EXPECT_FALSE(is_peer_loss("Connection refused"));
  EXPECT_FALSE(is_peer_loss(""));
}

}  // namespace
}  // namespace cpprun::worker
