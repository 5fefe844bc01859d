#include "launcher/ssh/plan/start_failure.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "common/exit_code.hpp"
#include "common/limits/ssh.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "launcher/ssh/plan/shell_command.hpp"

namespace cpprun::ssh {
namespace {

constexpr int kNotExecutable = 126;  // POSIX: codes of a shell
constexpr int kNotFound = 127;

// Parts of OpenSSH's messages, which it does not translate. The first that fits counts.
struct Known {
  std::string_view part;
  std::string_view reason;
  std::string_view hint;
};
constexpr Known kKnown[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED",
     "its host key is not the one in known_hosts: another machine answers under this name, or it "
     "was installed anew",
     "if that is expected, remove the old key with ssh-keygen -R HOST and log in once by hand"},
    {"Host key verification failed", "its host key is not in known_hosts",
     "log in once by hand with ssh HOST, and check and accept the key"},
    {"Permission denied",
     "it accepts no key of yours, and ssh may not ask for a password (BatchMode)",
     "add your public key with ssh-copy-id HOST, or start ssh-agent"},
    {"Could not resolve hostname", "its name is unknown here",
     "correct the name, or add a Host entry to ~/.ssh/config"},
    {"Connection refused", "nothing listens at its ssh port",
     "start sshd there, or set the Port in ~/.ssh/config"},
    {"timed out", "it does not answer", "check that it is up and that no firewall drops packets"},
    {"No route to host", "no route leads to it", "check that it is up"},
    {"Network is unreachable", "its network cannot be reached from here",
     "check the routes of this machine with ip route"},
    {"Connection closed", "it closed the connection",
     "see the log of sshd there; its MaxStartups may be too small"},
    {"Connection reset", "it reset the connection",
     "see the log of sshd there; its MaxStartups may be too small"},
    {"Bad configuration option", "ssh does not accept its options",
     "see ssh's message above, and correct --ssh or ~/.ssh/config"},
};
constexpr Known kUnknown = {"", "ssh failed; its message is above",
                            "`ssh HOST true` must work by itself"};
constexpr const char* kInstallHint =
    "install the same version there, or give its path with --remote-cpprun=PATH";

std::string with_hint(const std::string& text, const std::string& hint) {
  return text + "\nhint: " + hint;
}

std::string unreachable_text(const StartFacts& facts) {
  const auto* known = std::ranges::find_if(
      kKnown, [&](const Known& each) { return facts.errors.find(each.part) != std::string::npos; });
  const Known& reason = known == std::end(kKnown) ? kUnknown : *known;
  std::string hint(reason.hint);
  const size_t at = hint.find("HOST");
  if (at != std::string::npos) hint.replace(at, 4, facts.host);
  if (facts.via.empty()) {
    return with_hint("host " + facts.host + " cannot be reached: " + std::string(reason.reason),
                     hint);
  }
  return with_hint("host " + facts.host + " cannot be reached from host " + facts.via + ": " +
                       std::string(reason.reason),
                   "on host " + facts.via + ": " + hint + "; or leave --ssh-tree out");
}

}  // namespace

std::string start_failure_text(const StartFacts& facts) {
  const std::string host = "host " + facts.host;
  if (facts.is_timeout) {
    return with_hint(
        host + " did not start cpprun within " + text::seconds(limits::kSshStartTimeout, 0),
        "try `ssh " + facts.host +
            " true`: a login shell that starts another program or asks a question is a cause");
  }
  if (!facts.is_local) {
    if (facts.exit_code == kSshFailed) return unreachable_text(facts);
    if (facts.exit_code == kNoDirectory) {
      return with_hint(
          host + " has no directory " + facts.directory,
          "start cpprun in a directory that all hosts have, such as one on a shared disk");
    }
  }
  if (facts.exit_code == kNotFound)
    return with_hint(host + " has no " + facts.program, kInstallHint);
  if (facts.exit_code == kNotExecutable)
    return with_hint(host + " cannot execute " + facts.program, kInstallHint);
  if (facts.exit_code == kUsageError && facts.errors.find("unknown option") != std::string::npos) {
    return with_hint(host + " has another version of cpprun, which lacks an option", kInstallHint);
  }
  return with_hint(host + " did not start cpprun: " + facts.program + " ended with exit code " +
                       std::to_string(facts.exit_code),
                   "see its message above");
}

std::vector<std::string> with_each_hint_once(const std::vector<std::string>& failures) {
  std::vector<std::string> texts;
  std::set<std::string> hints;
  for (const std::string& failure : failures) {
    const size_t end = failure.find("\nhint: ");
    const bool is_new = end != std::string::npos && hints.insert(failure.substr(end)).second;
    texts.push_back(is_new ? failure : failure.substr(0, end));
  }
  return texts;
}

std::string version_text(const std::string& host, const std::string& theirs,
                         const std::string& own) {
  return with_hint("host " + host + " has cpprun " +
                       text::one_line(theirs, limits::kLoginTextShown) + " and this is " + own,
                   kInstallHint);
}

std::string login_text_warning(const std::string& host, const std::string& text) {
  return "host " + host + ": the login shell prints \"" +
         text::one_line(text::strip(text), limits::kLoginTextShown) +
         "\" on stdout, which is no output of the job and is left out\nhint: let its start-up file "
         "print only for interactive shells (bash: case $- in *i*) ...)";
}

}  // namespace cpprun::ssh
