#include "agent/core/string_template.hpp"

namespace cpprun::agent {
namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

size_t name_length(std::string_view text) {
  if (text.empty() || !is_name_start(text.front())) return 0;
  size_t n = 1;
  while (n < text.size() && is_name(text[n])) ++n;
  return n;
}

const std::string* find(const Macros& macros, std::string_view name) {
  for (const auto& [known, value] : macros) {
    if (known == name) return &value;
  }
  return nullptr;
}

// The text behind a '$': its length, and its replacement if the macro is known.
struct Match {
  size_t length = 0;
  const std::string* value = nullptr;
};

Match match(std::string_view behind, const Macros& macros) {
  bool is_braced = !behind.empty() && behind.front() == '{';
  std::string_view rest = is_braced ? behind.substr(1) : behind;
  size_t n = name_length(rest);
  if (n == 0 || (is_braced && (n >= rest.size() || rest[n] != '}'))) return {};
  return Match{is_braced ? n + 2 : n, find(macros, rest.substr(0, n))};
}

}  // namespace

std::string safe_substitute(std::string_view text, const Macros& macros) {
  std::string out;
  while (!text.empty()) {
    size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    if (!text.empty() && text.front() == '$') {
      out += '$';
      text.remove_prefix(1);
      continue;
    }
    Match found = match(text, macros);
    if (found.value != nullptr) {
      out += *found.value;
    } else {
      out += '$';
      out += text.substr(0, found.length);
    }
    text.remove_prefix(found.length);
  }
  return out;
}

}  // namespace cpprun::agent
