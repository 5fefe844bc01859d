#include "launcher/ssh/plan/control_lines.hpp"

#include <cstdint>
#include <span>

#include "common/limits/ssh.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun::ssh {
namespace {

constexpr std::string_view kHello = "cpprun-agent ";

std::string in_hex(std::string_view text) {
  return text::hex({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::optional<int> digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string out;
  out.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    const std::optional<int> high = digit_of(hex[i]);
    const std::optional<int> low = digit_of(hex[i + 1]);
    if (!high || !low) return std::nullopt;
    out += static_cast<char>(*high * 16 + *low);
  }
  return out;
}

Error malformed() {
  return Error{ErrorKind::Protocol,
               "standard input is not from a launcher of this version; --stdin-control is for the "
               "agents that --hosts starts"};
}

}  // namespace

std::string control_header(std::string_view secret, const std::vector<std::string>& variables) {
  std::string out = secret.empty() ? "" : "secret " + in_hex(secret) + "\n";
  for (const std::string& variable : variables) out += "variable " + in_hex(variable) + "\n";
  return out + "end\n";
}

std::string signal_line(int number) { return "signal " + std::to_string(number) + "\n"; }

std::string hello_line(std::string_view version) {
  return "\n" + std::string(kHello) + std::string(version) + "\n";
}

std::optional<std::string> version_of_hello(std::string_view line) {
  if (!line.starts_with(kHello)) return std::nullopt;
  return std::string(line.substr(kHello.size()));
}

Result<ControlLine> parse_control_line(std::string_view line) {
  using enum ControlLine::Kind;
  if (line.size() > limits::kControlLineBytes) return malformed();
  if (line == "end") return ControlLine{End, "", 0};
  if (line == "begin") return ControlLine{Begin, "", 0};
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return malformed();
  const std::string_view word = line.substr(0, blank);
  const std::string_view rest = line.substr(blank + 1);
  if (word == "signal") {
    const std::optional<int64_t> number = text::parse_int(rest);
    if (!number || *number < 1 || *number > kLastSignal) return malformed();
    return ControlLine{Signal, "", static_cast<int>(*number)};
  }
  if (word != "secret" && word != "variable") return malformed();
  std::optional<std::string> text = from_hex(rest);
  if (!text || text->empty()) return malformed();
  if (word == "secret") return ControlLine{Secret, std::move(*text), 0};
  const size_t equals = text->find('=');
  const bool has_name = equals != 0 && equals != std::string::npos;
  if (!has_name || text->find('\0') != std::string::npos) return malformed();
  return ControlLine{Variable, std::move(*text), 0};
}

}  // namespace cpprun::ssh
