// Why cpprun did not start on a host. tests/labs/test_ssh.py has most of them from a real ssh.
#include "launcher/ssh/plan/start_failure.hpp"

#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::ssh {
namespace {

using test::holds;

StartFacts facts(int code, const std::string& errors = "") {
  StartFacts made{"b", "/opt/cpprun", "/data"};
  made.exit_code = code;
  made.errors = errors;
  return made;
}

TEST(StartFailure, NamesTheHostAndTheRemedy) {
  const std::pair<std::string, std::string> known[] = {
      {"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
       "ssh-keygen -R b"},
      {"Host key verification failed.", "\nhint: log in once by hand with ssh b"},
      {"root@b: Permission denied (publickey).", "ssh-copy-id b"},
      {"ssh: connect to host b port 22: Connection timed out", "it does not answer"},
      {"ssh: connect to host b port 22: No route to host", "no route leads to it"},
      {"kex_exchange_identification: Connection closed by remote host", "MaxStartups"},
      {"something new", "`ssh b true` must work by itself"},
  };
  for (const auto& [errors, remedy] : known) {
    const std::string text = start_failure_text(facts(255, errors));
    EXPECT_TRUE(text.starts_with("host b cannot be reached: ")) << text;
    EXPECT_TRUE(holds(text, remedy)) << text;
    EXPECT_TRUE(holds(text, "\nhint: ")) << text;
    EXPECT_FALSE(holds(text.substr(0, text.find('\n')), "ssh b")) << "the remedy is the hint's";
  }
}

TEST(StartFailure, NamesTheHostFromWhichSshFailed) {
  StartFacts inner = facts(255, "root@b: Permission denied (publickey).");
  inner.via = "a";
  const std::string text = start_failure_text(inner);
  EXPECT_TRUE(text.starts_with("host b cannot be reached from host a: it accepts no key")) << text;
  EXPECT_TRUE(holds(text, "\nhint: on host a: add your public key with ssh-copy-id b")) << text;
  EXPECT_TRUE(holds(text, "leave --ssh-tree out")) << text;
}

TEST(StartFailure, NamesWhatTheHostLacks) {
  EXPECT_TRUE(holds(start_failure_text(facts(127)), "host b has no /opt/cpprun"));
  EXPECT_TRUE(holds(start_failure_text(facts(126)), "cannot execute /opt/cpprun"));
  EXPECT_TRUE(holds(start_failure_text(facts(124)), "host b has no directory /data"));
  EXPECT_TRUE(holds(start_failure_text(facts(2, "cpprun: error: unknown option --stdin-control")),
                    "another version of cpprun"));
  EXPECT_TRUE(holds(start_failure_text(facts(1)), "ended with exit code 1"));
  EXPECT_TRUE(holds(version_text("b", "0.0.1", "9.9"), "host b has cpprun 0.0.1 and this is 9.9"));
}

TEST(StartFailure, CodesOfSshMeanNothingWithoutIt) {
  StartFacts local = facts(255);
  local.is_local = true;
  EXPECT_TRUE(holds(start_failure_text(local), "ended with exit code 255"));
}

TEST(StartFailure, ReportsASilentHost) {
  StartFacts silent = facts(0);
  silent.is_timeout = true;
  EXPECT_TRUE(holds(start_failure_text(silent), "did not start cpprun within 120 s"));
}

TEST(StartFailure, EachHintIsGivenOnce) {
  const std::vector<std::string> failures = {"a is old\nhint: install it", "b is gone",
                                             "c is old\nhint: install it", "d\nhint: wait"};
  const std::vector<std::string> shown = {"a is old\nhint: install it", "b is gone", "c is old",
                                          "d\nhint: wait"};
  EXPECT_EQ(with_each_hint_once(failures), shown);
}

TEST(StartFailure, TextOfALoginShellIsShownAsOneLine) {
  EXPECT_TRUE(holds(login_text_warning("b", "one\ntwo\n"), "prints \"one two\" on stdout"));
}

}  // namespace
}  // namespace cpprun::ssh
