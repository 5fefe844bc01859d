// Why cpprun did not start on a host, and what to do. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cpprun::ssh {

constexpr int kSshFailed = 255;  // the exit code of ssh after an error of its own

// What is known about an ssh process that ended before cpprun sent its hello.
struct StartFacts {
  std::string host;     // as the user wrote it
  std::string program;  // cpprun's path there
  std::string directory;
  bool is_local = false;    // started without ssh
  bool is_timeout = false;  // it has not ended, and sent nothing in time
  int exit_code = 0;        // 128 + N: ended by signal N
  std::string errors{};     // the end of its stderr
  std::string via{};        // the host on which ssh ran; "": this machine
};

// What failed on which host, and on a second line, which begins with "hint: ", the remedy. So do
// the texts below.
std::string start_failure_text(const StartFacts& facts);

// The texts without hints that an earlier one has: hosts often fail for the same reason.
std::vector<std::string> with_each_hint_once(const std::vector<std::string>& failures);

// cpprun there reports the version `theirs`.
std::string version_text(const std::string& host, const std::string& theirs,
                         const std::string& own);

// Its login shell has printed `text` before cpprun started.
std::string login_text_warning(const std::string& host, const std::string& text);

}  // namespace cpprun::ssh
