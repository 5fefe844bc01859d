#include "launcher/ssh/plan/shell_command.hpp"

#include <algorithm>

namespace cpprun::ssh {
namespace {

bool is_plain(char c) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kPlain.find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_command(const std::string& directory, const std::vector<std::string>& words) {
  std::string out =
      "cd " + shell_quoted(directory) + " || exit " + std::to_string(kNoDirectory) + "; exec";
  for (const std::string& word : words) out += " " + shell_quoted(word);
  return out;
}

}  // namespace cpprun::ssh
