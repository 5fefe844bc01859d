#include "rendezvous/observe/prometheus.hpp"

#include <array>
#include <charconv>

namespace cpprun::prometheus {
namespace {

// Escapes everything but plain text as %XX (and % as %25). Different values stay different, and no
// value can break the page, as bytes that are not UTF-8 would.
void append_escaped(std::string& out, std::string_view value) {
  constexpr char kHex[] = "0123456789ABCDEF";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%' || byte < 0x20 || byte > 0x7E) {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
}

}  // namespace

std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

void Text::family(std::string_view name, std::string_view kind, std::string_view help) {
  name_ = name;
  out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out_.append("# TYPE ").append(name).append(" ").append(kind).append("\n");
}

void Text::part(std::string_view suffix, const Labels& labels, double value) {
  line(suffix, labels, number(value));
}

void Text::line(std::string_view suffix, const Labels& labels, std::string_view value) {
  out_.append(name_).append(suffix);
  std::string_view before = "{";
  for (const auto& [name, text] : labels) {
    out_.append(before).append(name).append("=\"");
    append_escaped(out_, text);
    out_ += '"';
    before = ",";
  }
  if (!labels.empty()) out_ += '}';
  out_.append(" ").append(value).append("\n");
}

}  // namespace cpprun::prometheus
