// Which failures count as the same one.
#include "common/failure/fingerprint.hpp"

#include <gtest/gtest.h>

#include "common/limits/agent.hpp"

namespace cpprun::test {
namespace {

WorkerExit raised(const std::string& message, const std::string& place = "train.py\", line 7") {
  WorkerExit end;
  end.exit_code = 1;
  end.last_lines = {"Traceback (most recent call last):", "  File \"/job/" + place + ", in load",
                    message};
  return end;
}

WorkerExit killed(int signal) {
  WorkerExit end;
  end.exit_code = -signal;
  return end;
}

TEST(Fingerprint, HasTypeMessageAndPlace) {
  EXPECT_EQ(fingerprint_of(raised("ValueError: no such batch")),
            "code 1 train.py:7 in load ValueError: no such batch");
}

TEST(Fingerprint, IgnoresNumbersInTheMessageButNotThePlace) {
  const std::string first = fingerprint_of(raised("ValueError: pid 4711 at 0x7f01"));
  EXPECT_EQ(first, fingerprint_of(raised("ValueError: pid 1 at 0x9f99")));
  EXPECT_NE(first, fingerprint_of(raised("ValueError: pid 1 at 0x9f99", "train.py\", line 8")));
  EXPECT_NE(first, fingerprint_of(raised("KeyError: pid 1 at 0x9f99")));
}

TEST(Fingerprint, IsTheSameOnEachRank) {
  WorkerExit other = raised("ValueError: x");
  other.rank = Rank(5);
  other.pid = 99;
  EXPECT_EQ(fingerprint_of(raised("ValueError: x")), fingerprint_of(other));
}

TEST(Fingerprint, OfASignalACodeAndAHang) {
  EXPECT_EQ(fingerprint_of(killed(9)), "SIGKILL");
  EXPECT_NE(fingerprint_of(killed(9)), fingerprint_of(killed(11)));
  WorkerExit silent;
  silent.exit_code = 3;
  EXPECT_EQ(fingerprint_of(silent), "code 3  ");
  silent.hang = "no heartbeat for 5.0 s";
  EXPECT_EQ(fingerprint_of(silent), "hang");
}

TEST(Fingerprint, AWorkerThatOnlyLostAPeerHasNone) {
  WorkerExit end = raised("RuntimeError: Connection closed by peer [10.0.0.1]:4711");
  ASSERT_TRUE(is_consequence(end));
  EXPECT_EQ(fingerprint_of(end), "");
}

TEST(Fingerprint, IsBounded) {
  EXPECT_LE(fingerprint_of(raised("ValueError: " + std::string(100'000, 'x'))).size(),
            limits::kFingerprintBytes);
}

TEST(Fingerprint, KnowsImportAndSyntaxErrors) {
  EXPECT_TRUE(is_import_or_syntax_error(raised("ModuleNotFoundError: No module named 'x'")));
  EXPECT_TRUE(is_import_or_syntax_error(raised("ImportError: libfoo.so: cannot open")));
  EXPECT_TRUE(is_import_or_syntax_error(raised("SyntaxError: invalid syntax")));
  EXPECT_TRUE(is_import_or_syntax_error(raised("IndentationError: unexpected indent")));
  EXPECT_FALSE(is_import_or_syntax_error(raised("ValueError: ImportError: not really")));
  EXPECT_FALSE(is_import_or_syntax_error(killed(11)));
}

}  // namespace
}  // namespace cpprun::test
