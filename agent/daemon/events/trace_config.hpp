// Where the spans of a job go, by the environment variables of the OpenTelemetry specification, and
// the ids of its trace. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/url.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/traces/otlp_json.hpp"

namespace cpprun {

// The parent of the job, from TRACEPARENT.
struct TraceParent {
  std::string trace_id;  // 32 hex digits
  std::string span_id;   // 16 hex digits
  bool is_sampled = true;
};
// Empty: the text has not the form of the W3C recommendation.
std::optional<TraceParent> parse_traceparent(std::string_view text);

struct TraceConfig {
  Url url;
  NamedTexts headers;     // secret
  NamedTexts attributes;  // of the resource, service.name first
  std::optional<TraceParent> parent;
};
// Empty: no spans are wanted. `environment`: "NAME=value". Error: they cannot be sent; the text
// has the reason and repeats no value.
Result<std::optional<TraceConfig>> trace_config(const std::vector<std::string>& environment);

// The ids of a job's trace. All nodes compute the same ones, since all know the key of the job.
class TraceIds {
 public:
  // `job_key`: RankAssignment::job_key, which stays secret.
  TraceIds(std::optional<TraceParent> parent, std::string job_key)
      : parent_(std::move(parent)), key_(std::move(job_key)) {}

  std::string trace() const;
  std::string job() const { return span("job"); }
  std::string round(RoundNumber round) const {
    return span("round " + std::to_string(round.value));
  }
  std::string span(const std::string& name) const;
  std::string parent_of_job() const { return parent_ ? parent_->span_id : ""; }
  // TRACEPARENT for the workers of a round.
  std::string traceparent(RoundNumber of) const;

 private:
  std::optional<TraceParent> parent_;
  std::string key_;
};

}  // namespace cpprun
