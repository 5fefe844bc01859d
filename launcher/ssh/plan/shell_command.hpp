// Command lines for a POSIX shell on another host. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpprun::ssh {

// One word for the shell, whatever bytes `word` holds: unchanged if no byte means something to a
// shell, otherwise in single quotes.
std::string shell_quoted(std::string_view word);

// The exit code of the command below if the directory is missing.
inline constexpr int kNoDirectory = 124;

// "cd DIRECTORY || exit 124; exec WORDS...".
std::string shell_command(const std::string& directory, const std::vector<std::string>& words);

}  // namespace cpprun::ssh
