#include "launcher/ssh/plan/start_failure.hpp"

#include <string_view>

#include "common/exit_code.hpp"
#include "common/limits/ssh.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "launcher/ssh/plan/shell_command.hpp"

namespace cpprun::ssh {
namespace {

constexpr int kSshFailed = 255;
constexpr int kNotExecutable = 126;  // POSIX: codes of a shell
constexpr int kNotFound = 127;

// Parts of OpenSSH's messages, which it does not translate. The first that fits counts.
struct Known {
  std::string_view part;
  std::string_view reason;
};
constexpr Known kKnown[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED",
     "its host key is not the one in known_hosts: another machine answers under this name, or it "
     "was installed anew. If that is expected, remove the old key with ssh-keygen -R HOST and log "
     "in once by hand"},
    {"Host key verification failed",
     "its host key is not in known_hosts; log in once by hand with ssh HOST, and check and accept "
     "the key"},
    {"Permission denied",
     "it accepts no key of yours, and ssh may not ask for a password (BatchMode); add your public "
     "key with ssh-copy-id HOST, or start ssh-agent"},
    {"Could not resolve hostname",
     "its name is unknown here; correct the name, or add a Host entry to ~/.ssh/config"},
    {"Connection refused",
     "nothing listens at its ssh port; start sshd there, or set the Port in ~/.ssh/config"},
    {"timed out", "it does not answer; check that it is up and that no firewall drops packets"},
    {"No route to host", "no route leads to it; check that it is up"},
    {"Network is unreachable", "its network cannot be reached from here"},
    {"Connection closed", "it closed the connection; see the log of sshd there (MaxStartups?)"},
    {"Connection reset", "it reset the connection; see the log of sshd there (MaxStartups?)"},
    {"Bad configuration option", "ssh does not accept its options; see its message above"},
};

std::string with_host(std::string_view text, const std::string& host) {
  std::string out(text);
  const size_t at = out.find("HOST");
  return at == std::string::npos ? out : out.replace(at, 4, host);
}

std::string reason_of_ssh(const StartFacts& facts) {
  for (const Known& known : kKnown) {
    if (facts.errors.find(known.part) == std::string::npos) continue;
    std::string reason = with_host(known.reason, facts.host);
    return reason;
  }
  return "ssh failed; its message is above, and `ssh " + facts.host + " true` must work by itself";
}

}  // namespace

std::string start_failure_text(const StartFacts& facts) {
  const std::string host = "host " + facts.host;
  const std::string cure =
      "; install the same version there, or give its path with --remote-cpprun=PATH";
  if (facts.is_timeout) {
    return host + " did not start cpprun within " + text::seconds(limits::kSshStartTimeout, 0) +
           "; try `ssh " + facts.host +
           " true`: a login shell that starts another program or asks a question is a cause";
  }
  if (!facts.is_local) {
    if (facts.exit_code == kSshFailed) return host + " cannot be reached: " + reason_of_ssh(facts);
    if (facts.exit_code == kNoDirectory) {
      return host + " has no directory " + facts.directory +
             ": start cpprun in a directory that all hosts have, such as one on a shared disk";
    }
  }
  if (facts.exit_code == kNotFound) return host + " has no " + facts.program + cure;
  if (facts.exit_code == kNotExecutable) return host + " cannot execute " + facts.program + cure;
  if (facts.exit_code == kUsageError && facts.errors.find("unknown option") != std::string::npos) {
    return host + " has another version of cpprun, which lacks an option" + cure;
  }
  return host + " did not start cpprun: " + facts.program + " ended with exit code " +
         std::to_string(facts.exit_code) + "; its message is above";
}

std::string version_text(const std::string& host, const std::string& theirs,
                         const std::string& own) {
  return "host " + host + " has cpprun " + text::one_line(theirs, limits::kLoginTextShown) +
         " and this is " + own +
         "; install the same version there, or give its path with --remote-cpprun=PATH";
}

std::string login_text_warning(const std::string& host, const std::string& text) {
  return "host " + host + ": the login shell prints \"" +
         text::one_line(text::strip(text), limits::kLoginTextShown) +
         "\" on stdout, which is no output of the job and is left out; let its start-up file "
         "print only for interactive shells (bash: case $- in *i*) ...)";
}

}  // namespace cpprun::ssh
