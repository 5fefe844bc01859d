#include "common/traces/otlp_json.hpp"

#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/limits/traces.hpp"
#include "common/text.hpp"
#include "common/version.hpp"

namespace cpprun {
namespace {

using nlohmann::ordered_json;

ordered_json value_of(int64_t value) { return {{"intValue", std::to_string(value)}}; }
ordered_json value_of(const std::string& value) {
  return {{"stringValue", text::cut(value, limits::kSpanTextBytes)}};
}

}  // namespace

std::string otlp_json(const OtlpSpan& span) {
  constexpr int kInternal = 1;
  constexpr int kOk = 1;
  constexpr int kError = 2;
  ordered_json json{{"traceId", span.trace_id}, {"spanId", span.id}};
  if (!span.parent.empty()) json["parentSpanId"] = span.parent;
  json["name"] = span.name;
  json["kind"] = kInternal;
  json["startTimeUnixNano"] = std::to_string(span.begin_ns);
  json["endTimeUnixNano"] = std::to_string(span.end_ns);
  json["attributes"] = ordered_json::array();
  for (const auto& [name, value] : span.attributes) {
    json["attributes"].push_back(
        {{"key", name}, {"value", std::visit([](const auto& v) { return value_of(v); }, value)}});
  }
  json["status"] = {{"code", span.error.empty() ? kOk : kError}};
  if (!span.error.empty()) {
    json["status"]["message"] = text::cut(span.error, limits::kSpanTextBytes);
  }
  return dump_json(json);
}

std::string otlp_request(const NamedTexts& attributes, const std::vector<std::string>& spans) {
  ordered_json all = ordered_json::array();
  for (const auto& [name, value] : attributes) {
    all.push_back({{"key", name}, {"value", value_of(value)}});
  }
  const ordered_json scope{{"name", "cpprun"}, {"version", version()}};
  return R"({"resourceSpans":[{"resource":{"attributes":)" + dump_json(all) +
         R"(},"scopeSpans":[{"scope":)" + dump_json(scope) + R"(,"spans":[)" +
         text::join(spans, ",") + "]}]}]}";
}

}  // namespace cpprun
