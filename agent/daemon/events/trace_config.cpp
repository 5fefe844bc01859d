#include "agent/daemon/events/trace_config.hpp"

#include <algorithm>
#include <charconv>

#include "common/limits/traces.hpp"
#include "common/proof/hmac.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr size_t kTraceDigits = 32;
constexpr size_t kSpanDigits = 16;

bool is_id(std::string_view text, size_t digits) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == digits && std::ranges::all_of(text, is_hex) &&
         text.find_first_not_of('0') != std::string_view::npos;
}

// "a=b,c=d", values with percent-encoding.
NamedTexts pairs_of(std::string_view text) {
  NamedTexts pairs;
  for (const std::string& part : text::split(text, ',')) {
    const size_t sign = part.find('=');
    const std::string_view whole(part);
    if (sign == std::string::npos || pairs.size() >= limits::kTraceAttributes) continue;
    std::string name(text::strip(whole.substr(0, sign)));
    if (name.empty()) continue;
    pairs.emplace_back(std::move(name), text::percent_decoded(text::strip(whole.substr(sign + 1))));
  }
  return pairs;
}

class Variables {
 public:
  explicit Variables(const std::vector<std::string>& environment) : environment_(environment) {}

  // "" if it is unset; the specification treats both alike.
  std::string operator[](std::string_view name) const {
    for (const std::string& entry : environment_) {
      if (const auto value = text::value_of(entry, name)) return std::string(text::strip(*value));
    }
    return "";
  }
  // The variable for traces, else the one for all signals.
  std::string of_traces(const std::string& name) const {
    const std::string own = (*this)["OTEL_EXPORTER_OTLP_TRACES_" + name];
    return own.empty() ? (*this)["OTEL_EXPORTER_OTLP_" + name] : own;
  }

 private:
  const std::vector<std::string>& environment_;
};

// "true" in any case; the specification knows no other word for it.
bool is_true(const std::string& word) {
  return std::ranges::equal(word, std::string_view("true"), [](char c, char wanted) {
    return c == wanted || c == wanted - 'a' + 'A';
  });
}

bool is_off(const Variables& variables) {
  return is_true(variables["OTEL_SDK_DISABLED"]) || variables["OTEL_TRACES_EXPORTER"] == "none";
}

// The variable for all signals names a base, to which the path is appended.
std::string endpoint_of(const Variables& variables) {
  std::string own = variables["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
  if (!own.empty()) return own;
  std::string base = variables["OTEL_EXPORTER_OTLP_ENDPOINT"];
  if (base.empty()) return "";
  return base + (base.ends_with('/') ? "v1/traces" : "/v1/traces");
}

Status check_headers(const NamedTexts& headers) {
  const auto breaks_line = [](const std::string& text) {
    return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos;
  };
  for (const auto& [name, value] : headers) {
    if (breaks_line(name) || breaks_line(value) || name.find_first_of(" :") != std::string::npos) {
      return Error{ErrorKind::BadValue, "OTEL_EXPORTER_OTLP_HEADERS has a value that is no header"};
    }
  }
  return {};
}

NamedTexts attributes_of(const Variables& variables) {
  NamedTexts attributes = pairs_of(variables["OTEL_RESOURCE_ATTRIBUTES"]);
  std::string name = variables["OTEL_SERVICE_NAME"];
  const auto given =
      std::ranges::find(attributes, "service.name", &std::pair<std::string, std::string>::first);
  if (given != attributes.end()) {
    if (name.empty()) name = given->second;
    attributes.erase(given);
  }
  attributes.emplace(attributes.begin(), "service.name", name.empty() ? "cpprun" : name);
  return attributes;
}

}  // namespace

std::optional<TraceParent> parse_traceparent(std::string_view text) {
  const std::vector<std::string> parts = text::split(text, '-');
  constexpr size_t kParts = 4;
  const bool is_whole = parts.size() == kParts || (parts.size() > kParts && parts[0] != "00");
  if (!is_whole || parts[0].size() != 2 || parts[0] == "ff" || parts[3].size() != 2)
    return std::nullopt;
  if (!is_id(parts[1], kTraceDigits) || !is_id(parts[2], kSpanDigits)) return std::nullopt;
  uint8_t flags = 0;
  const char* end = parts[3].data() + 2;
  if (std::from_chars(parts[3].data(), end, flags, 16).ptr != end) return std::nullopt;
  return TraceParent{parts[1], parts[2], (flags & 1) != 0};
}

Result<std::optional<TraceConfig>> trace_config(const std::vector<std::string>& environment) {
  const Variables variables(environment);
  const std::string endpoint = endpoint_of(variables);
  if (endpoint.empty() || is_off(variables)) return std::optional<TraceConfig>();
  TraceConfig config;
  config.parent = parse_traceparent(variables["TRACEPARENT"]);
  // The parent has decided that this trace is not recorded.
  if (config.parent && !config.parent->is_sampled) return std::optional<TraceConfig>();
  if (variables.of_traces("PROTOCOL") == "grpc") {
    return Error{ErrorKind::BadValue,
                 "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: cpprun sends them by HTTP, as JSON; set "
                 "http/json, and the collector's port for HTTP (4318)"};
  }
  Result<Url> url = parse_url(endpoint);
  if (!url) return Error{ErrorKind::BadValue, "OTEL_EXPORTER_OTLP_ENDPOINT: " + url.error().text};
  config.url = std::move(*url);
  config.headers = pairs_of(variables.of_traces("HEADERS"));
  if (Status ok = check_headers(config.headers); !ok) return ok.error();
  config.attributes = attributes_of(variables);
  return std::optional<TraceConfig>(std::move(config));
}

std::string TraceIds::trace() const {
  if (parent_) return parent_->trace_id;
  return hmac_of(key_, "trace").substr(0, kTraceDigits);
}

std::string TraceIds::span(const std::string& name) const {
  return hmac_of(key_, "span " + name).substr(0, kSpanDigits);
}

std::string TraceIds::traceparent(RoundNumber of) const {
  return "00-" + trace() + "-" + round(of) + "-01";
}

}  // namespace cpprun
