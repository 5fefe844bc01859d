#include "common/failure/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/failure/error_location.hpp"
#include "common/failure/failure_class.hpp"
#include "common/limits/agent.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr std::array<std::string_view, 5> kImportOrSyntax{
    "ImportError:", "ModuleNotFoundError:", "SyntaxError:", "IndentationError:", "TabError:"};

bool is_number(char c) { return c >= '0' && c <= '9'; }

std::string without_digits(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (!is_number(c)) out += c;
  }
  return out;
}

}  // namespace

std::string fingerprint_of(const WorkerExit& end) {
  if (end.is_hang()) return "hang";
  if (end.signal() != 0) return signal_name(end.signal());
  if (is_consequence(end)) return "";
  const std::string error = error_text(end);
  const std::string first = without_digits(error.substr(0, error.find('\n')));
  const std::string place = error_location(end);
  return text::one_line("code " + std::to_string(end.exit_code) + " " + place + " " + first,
                        limits::kFingerprintBytes);
}

bool is_import_or_syntax_error(const WorkerExit& end) {
  if (end.is_hang() || end.signal() != 0) return false;
  const std::string error = error_text(end);
  return std::ranges::any_of(kImportOrSyntax,
                             [&](std::string_view type) { return error.starts_with(type); });
}

}  // namespace cpprun
