#include "rendezvous/observe/prometheus.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "common/text.hpp"

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

// Without `suffix` at its end, if it has that.
std::string_view without(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

// The weight of a media range in an Accept header: 1 without a parameter q. Empty: it is not there.
std::optional<double> weight_of(std::string_view accept, std::string_view type) {
  for (const std::string& range : text::split(accept, ',')) {
    const std::vector<std::string> words = text::split(range, ';');
    if (words.empty() || text::strip(words.front()) != type) continue;
    double weight = 1;
    for (const std::string& word : words) {
      const std::string_view parameter = text::strip(word);
      if (!parameter.starts_with("q=")) continue;
      weight = text::parse_double(parameter.substr(2)).value_or(0);
    }
    return weight;
  }
  return std::nullopt;
}

}  // namespace

// As Prometheus' own libraries: a client that names OpenMetrics understands it.
Format format_for(std::string_view accept) {
  const double open = weight_of(accept, "application/openmetrics-text").value_or(0);
  const double plain = weight_of(accept, "text/plain").value_or(0);
  return open > 0 && open >= plain ? Format::OpenMetrics : Format::Prometheus;
}

const char* media_type(Format format) {
  return format == Format::OpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

void Text::family(std::string_view name, std::string_view kind, std::string_view help) {
  name_ = name;
  if (format_ == Format::Prometheus) {
    return describe(name, kind == "info" ? "gauge" : kind, help);
  }
  const std::string_view family = kind == "counter" ? without(name, "_total")
                                  : kind == "info"  ? without(name, "_info")
                                                    : name;
  // A gauge cpprun_x forbids a counter family cpprun_x. The names of series stay, so that queries
  // hold for both formats; then the type is unknown.
  if (families_.insert(std::string(family)).second) return describe(family, kind, help);
  families_.insert(std::string(name));
  describe(name, "unknown", help);
}

void Text::describe(std::string_view name, std::string_view kind, std::string_view help) {
  out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out_.append("# TYPE ").append(name).append(" ").append(kind).append("\n");
  if (format_ == Format::OpenMetrics && name.ends_with("_seconds"))
    out_.append("# UNIT ").append(name).append(" seconds\n");
}

// OpenMetrics asks for 10.0 where Prometheus has 10.
std::string Text::bound(double value) const {
  const bool is_whole = format_ == Format::OpenMetrics && value == std::floor(value);
  return number(value) + (is_whole ? ".0" : "");
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
