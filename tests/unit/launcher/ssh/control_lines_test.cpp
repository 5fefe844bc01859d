// What passes between launcher and agent.
#include "launcher/ssh/plan/control_lines.hpp"

#include <gtest/gtest.h>

#include "common/limits/ssh.hpp"
#include "common/text.hpp"

namespace cpprun::ssh {
namespace {

using Kind = ControlLine::Kind;

TEST(ControlLines, TheHeaderArrives) {
  const std::string secret("s\0\n1", 4);
  const std::string header = control_header(secret, {"A=b\nc", "EMPTY="});
  const std::vector<std::string> lines = text::split(header, '\n');
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(parse_control_line(lines[0])->text, secret);
  EXPECT_EQ(parse_control_line(lines[0])->kind, Kind::Secret);
  EXPECT_EQ(parse_control_line(lines[1])->text, "A=b\nc");
  EXPECT_EQ(parse_control_line(lines[2])->text, "EMPTY=");
  EXPECT_EQ(parse_control_line(lines[3])->kind, Kind::End);
  EXPECT_EQ(control_header("", {}), "end\n");
}

TEST(ControlLines, SignalsArrive) {
  EXPECT_EQ(signal_line(15), "signal 15\n");
  EXPECT_EQ(parse_control_line("signal 15")->signal, 15);
  EXPECT_EQ(parse_control_line("begin")->kind, Kind::Begin);
}

TEST(ControlLines, OtherTextIsRefused) {
  for (const char* line :
       {"", "x", "ends", "signal", "signal 0", "signal 65", "signal x", "secret ", "secret 1",
        "secret 0G", "variable ", "variable 41", "variable 3d41", "variable 413d00", "begin 1"}) {
    EXPECT_FALSE(parse_control_line(line)) << line;
  }
  const std::string longest(limits::kControlLineBytes, '6');
  EXPECT_FALSE(parse_control_line("secret " + longest));
}

TEST(ControlLines, AHelloHasALineOfItsOwn) {
  EXPECT_EQ(hello_line("1.2.3"), "\ncpprun-agent 1.2.3\n");
  EXPECT_EQ(version_of_hello("cpprun-agent 1.2.3"), "1.2.3");
  EXPECT_EQ(version_of_hello("Welcome cpprun-agent 1"), std::nullopt);
}

}  // namespace
}  // namespace cpprun::ssh
