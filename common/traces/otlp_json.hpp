// Spans as OTLP's JSON (opentelemetry-proto, trace/v1): numbers of 64 bits are texts. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace cpprun {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct OtlpSpan {
  std::string trace_id;
  std::string id;
  std::string parent;  // empty: it is the root
  std::string name;
  int64_t begin_ns = 0;  // since 1970
  int64_t end_ns = 0;
  std::string error;  // empty: it ended well
  std::vector<std::pair<std::string, std::variant<int64_t, std::string>>> attributes;
};

// A span as an object. Texts are cut at limits::kSpanTextBytes.
std::string otlp_json(const OtlpSpan& span);
// The body of a request with these objects. `attributes`: of the resource.
std::string otlp_request(const NamedTexts& attributes, const std::vector<std::string>& spans);

}  // namespace cpprun
