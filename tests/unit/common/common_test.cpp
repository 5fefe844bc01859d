// Small utilities: text, endpoints, signals, results, times.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "common/endpoint.hpp"
#include "common/json.hpp"
#include "common/result.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "common/time.hpp"

namespace cpprun::test {
namespace {

using Strings = std::vector<std::string>;

TEST(Text, SplitAndJoin) {
  EXPECT_EQ(text::split("a,b,,c", ','), (Strings{"a", "b", "", "c"}));
  EXPECT_EQ(text::split("", ','), Strings{""});
  EXPECT_EQ(text::split(",", ','), (Strings{"", ""}));
  EXPECT_EQ(text::join({"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(text::join({}, ","), "");
  EXPECT_EQ(text::strip(" \t\r\n\v\fx y\n"), "x y");
  EXPECT_EQ(text::strip(" \n"), "");
}

TEST(Text, ParsesIntegersAsPythonDoes) {
  EXPECT_EQ(text::parse_int("42"), 42);
  EXPECT_EQ(text::parse_int(" -7\n"), -7);
  EXPECT_EQ(text::parse_int("+7"), 7);
  EXPECT_EQ(text::parse_int("007"), 7);
  EXPECT_EQ(text::parse_int("9223372036854775807"), INT64_MAX);
  for (const char* bad : {"", " ", "+", "-", "+-7", "-+7", "1.0", "0x10", "7a", "7 8", "++1",
                          "9223372036854775808", "1e3"}) {
    EXPECT_FALSE(text::parse_int(bad)) << bad;
  }
}

TEST(Text, Fractions) {
  EXPECT_EQ(text::parse_double("0.1"), 0.1);
  EXPECT_EQ(text::parse_double(" +1e3 "), 1000.0);
  EXPECT_EQ(text::parse_double("-2"), -2.0);
  EXPECT_EQ(text::parse_double(".5"), 0.5);
  for (const char* bad : {"", "inf", "nan", "-inf", "1e999", "0x1p3", "+-5", "1,5", "1.5s", "."}) {
    EXPECT_FALSE(text::parse_double(bad)) << bad;
  }
}

TEST(Text, SuggestsTheNearestNameForATypo) {
  Strings names{"timeout", "last_call_timeout", "is_host"};
  EXPECT_EQ(text::nearest("timeuot", names), "timeout");
  EXPECT_EQ(text::nearest("is-host", names), "is_host");
  EXPECT_EQ(text::nearest("lastcall_timeout", names), "last_call_timeout");
  EXPECT_EQ(text::nearest("something else", names), "");
  EXPECT_EQ(text::nearest("x", {}), "");
}

TEST(Text, HexAndCount) {
  EXPECT_EQ(text::hex(std::array<uint8_t, 3>{0x00, 0xab, 0xff}), "00abff");
  EXPECT_EQ(text::count(1, "worker"), "1 worker");
  EXPECT_EQ(text::count(0, "worker"), "0 workers");
}

TEST(Text, EscapesControlCharacters) {
  EXPECT_EQ(text::printable("plain\ttext\nof \xC3\xA4"), "plain\ttext\nof \xC3\xA4");
  EXPECT_EQ(text::printable("\x1b[31mred\x1b[0m"), "red");
  EXPECT_EQ(text::printable("\x1b[2J\r\x7f"), "?[2J??");
  EXPECT_EQ(text::printable("\x1b[31"), "?[31");
  EXPECT_EQ(text::printable("a\xC2\x9B z\xC2\xA9"), "a? z\xC2\xA9");
  EXPECT_EQ(text::printable(std::string_view("\0", 1)), "?");
  EXPECT_EQ(text::one_line("two\nlines", 7), "two lin");
  EXPECT_TRUE(text::has_control("a\nb"));
  EXPECT_TRUE(text::has_control("a\xC2\x80"));
  EXPECT_FALSE(text::has_control("a \xC3\xA4"));
}

TEST(Text, ReplacesCharactersThatChangeTheDirectionOfText) {
  for (const char* changes :
       {"\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069", "\u061c"}) {
    EXPECT_TRUE(text::has_control(std::string("a") + changes)) << changes;
    EXPECT_EQ(text::printable(std::string("a") + changes + "b"), "a?b");
  }
  for (const char* plain :
       {"\u200d", "\u2010", "\u2029", "\u202f", "\u2065", "\u206a", "\u061b", "\u05d0"}) {
    EXPECT_FALSE(text::has_control(plain)) << plain;
    EXPECT_EQ(text::printable(plain), plain);
  }
}

TEST(Text, ReplacesControlBytesOfTerminalsWithoutUtf8) {
  EXPECT_EQ(text::printable("a\x9B"
                            "2J"),
            "a?2J");
  EXPECT_EQ(text::printable("\xE2\x80"), "\xE2?") << "no whole character";
  EXPECT_EQ(text::printable("caf\xE9"), "caf\xE9");
  EXPECT_EQ(text::printable("\u00db"), "\u00db") << "its second byte is 9B";
}

TEST(Json, EscapesWhatTerminalsCarryOut) {
  const nlohmann::json json{{"a", "\x1b\x7f\u009b\u202e\u00e4"}};
  const std::string text = dump_json(json, 1);
  EXPECT_EQ(text, "{\n \"a\": \"\\u001b\\u007f\\u009b\\u202e\u00e4\"\n}");
  EXPECT_EQ(nlohmann::json::parse(text), json);
}

TEST(Text, CuttingKeepsCharactersWhole) {
  EXPECT_EQ(text::cut("short", 5), "short");
  EXPECT_EQ(text::cut("longer", 4), "long");
  const std::string euro = "a\xE2\x82\xAC";  // one byte and three
  EXPECT_EQ(text::cut(euro, 4), euro);
  EXPECT_EQ(text::cut(euro, 3), "a");
  EXPECT_EQ(text::cut(std::string(9, '\x80'), 5), std::string(5, '\x80')) << "no UTF-8 at all";
  EXPECT_EQ(text::cut(euro, 0), "");
}

TEST(Text, FileNamesHaveNoSlashes) {
  EXPECT_EQ(text::file_name("../team/run", 100), ".._team_run");
  EXPECT_EQ(text::file_name("a/b", 2), "a_");
}

TEST(Text, NaturalOrderIsAStrictOrder) {
  Strings sorted{"", "a", "a1", "a2", "a10", "a10b", "b", "node-2.x", "node-10.x", "\xc3\xa4"};
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t j = 0; j < sorted.size(); ++j) {
      int order = text::natural_compare(sorted[i], sorted[j]);
      EXPECT_EQ(order < 0, i < j) << sorted[i] << " " << sorted[j];
      EXPECT_EQ(order == 0, i == j) << sorted[i] << " " << sorted[j];
    }
  }
  EXPECT_EQ(text::natural_compare("n007", "n7"), 0);
  EXPECT_LT(text::natural_compare("n99999999999999999999", "n100000000000000000000"), 0);
}

std::string read_endpoint(const char* text, std::optional<uint16_t> port = 29400) {
  Result<Endpoint> endpoint = parse_endpoint(text, port);
  return endpoint ? to_string(*endpoint) : "refused";
}

TEST(EndpointText, ParsesUserNotation) {
  EXPECT_EQ(read_endpoint("node0:1234"), "node0:1234");
  EXPECT_EQ(read_endpoint("node0"), "node0:29400");
  EXPECT_EQ(read_endpoint(""), "localhost:29400");
  EXPECT_EQ(read_endpoint("  10.0.0.1:80  "), "10.0.0.1:80");
  EXPECT_EQ(read_endpoint("[::1]:5"), "[::1]:5");
  EXPECT_EQ(read_endpoint("[::1]"), "[::1]:29400");
  EXPECT_EQ(read_endpoint("fe80::1%eth0"), "[fe80::1%eth0]:29400");
  EXPECT_EQ(read_endpoint("host:0"), "host:0");
  EXPECT_EQ(read_endpoint("host:65535"), "host:65535");
}

TEST(EndpointText, RejectsInvalidText) {
  for (const char* bad :
       {"host:", ":29400", "host:65536", "host:-1", "host:+1", "host: 1", "host:1x", "host:000001",
        "[::1", "[]:5", "[::1]5", "ho st:5", "http://host:5", "host/path", "["}) {
    EXPECT_EQ(read_endpoint(bad), "refused") << bad;
  }
  EXPECT_EQ(read_endpoint("host", std::nullopt), "refused");
  EXPECT_NE(parse_endpoint("host:x", {}).error().text.find("'host:x'"), std::string::npos);
}

TEST(Signals, ConvertsBothWays) {
  for (int number = 1; number <= 31; ++number) {
    EXPECT_EQ(signal_number(signal_name(number)), number);
  }
  EXPECT_EQ(signal_name(9), "SIGKILL");
  EXPECT_EQ(signal_name(64), "signal 64");
  EXPECT_FALSE(signal_number("sigterm"));
  EXPECT_FALSE(signal_number("TERM"));
  EXPECT_FALSE(signal_number(""));
}

TEST(ResultType, HoldsOneOfTwoValues) {
  Result<int> good = 3;
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(*good, 3);
  Result<int> bad = Error{ErrorKind::Usage, "no"};
  EXPECT_FALSE(bad);
  EXPECT_EQ(exit_code(bad.error()), 2);
  EXPECT_EQ(exit_code(Error{ErrorKind::Network, ""}), 1);
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status(Error{ErrorKind::System, "x"}).error().text, "x");
  EXPECT_EQ(system_error("open", 2).text, "open: No such file or directory");
}

TEST(ResultTypeDeathTest, ReadingTheWrongValueAborts) {
  Result<int> bad = Error{ErrorKind::Usage, "no"};
  EXPECT_DEATH(static_cast<void>(*bad), "this is a bug in cpprun");
}

TEST(Time, NeverPlusAnythingIsNever) {
  using namespace std::chrono_literals;
  EXPECT_TRUE((Instant::never() + 5s).is_never());
  EXPECT_TRUE((Instant::never() - 5s).is_never());
  EXPECT_LT(Instant::from_nanoseconds(INT64_MAX - 1), Instant::never());
  EXPECT_EQ(Instant::from_nanoseconds(5) - Instant::from_nanoseconds(7), Duration(-2));
  EXPECT_EQ(seconds(0.1), 100ms);
  EXPECT_EQ(to_seconds(1500ms), 1.5);
}

}  // namespace
}  // namespace cpprun::test
