// Where traces go by OpenTelemetry's environment variables, and the ids of a job's trace. Pure: it
// is in this binary because the module of the agent's daemon is.
#include "agent/daemon/events/trace_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/limits/traces.hpp"

namespace cpprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

constexpr auto kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr auto kSpan = "00f067aa0ba902b7";

const std::string kBase = "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318";

std::string traceparent(const std::string& flags = "01") {
  return std::string("00-") + kTrace + "-" + kSpan + "-" + flags;
}

TraceConfig config_of(const std::vector<std::string>& environment) {
  const auto config = trace_config(environment);
  EXPECT_TRUE(config) << config.error().text;
  EXPECT_TRUE(config->has_value());
  return config && *config ? **config : TraceConfig();
}

bool is_off(const std::vector<std::string>& environment) {
  const auto config = trace_config(environment);
  return config && !config->has_value();
}

std::string error_of(const std::vector<std::string>& environment) {
  const auto config = trace_config(environment);
  return config ? "" : config.error().text;
}

TEST(TraceConfigTest, WithoutAnEndpointNothingIsSent) {
  EXPECT_TRUE(is_off({}));
  EXPECT_TRUE(is_off({"OTEL_EXPORTER_OTLP_ENDPOINT="}));
  EXPECT_TRUE(is_off({"OTEL_SERVICE_NAME=trainer", "PATH=/bin"}));
}

TEST(TraceConfigTest, TheCommonEndpointIsABaseAndThatOfTracesIsWhole) {
  EXPECT_EQ(config_of({kBase}).url.target, "/v1/traces");
  EXPECT_EQ(config_of({kBase + "/otlp/"}).url.target, "/otlp/v1/traces");
  EXPECT_EQ(config_of({kBase, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://other:80/t"}).url.target,
            "/t");
}

TEST(TraceConfigTest, SwitchedOff) {
  for (const std::string off :
       {"OTEL_SDK_DISABLED=true", "OTEL_SDK_DISABLED=True", "OTEL_TRACES_EXPORTER=none"}) {
    EXPECT_TRUE(is_off({kBase, off})) << off;
  }
  EXPECT_FALSE(is_off({kBase, "OTEL_SDK_DISABLED=1"}));
}

TEST(TraceConfigTest, Grpc) {
  EXPECT_THAT(error_of({kBase, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}), HasSubstr("http/json"));
  // The variable for traces counts.
  EXPECT_EQ(error_of({kBase, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
                      "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"}),
            "");
}

TEST(TraceConfigTest, ErrorsRepeatNoValue) {
  EXPECT_THAT(error_of({"OTEL_EXPORTER_OTLP_ENDPOINT=ftp://user:hidden@host"}),
              testing::AllOf(HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT"), Not(HasSubstr("hidden"))));
  for (const std::string& headers :
       std::vector<std::string>{"a=hidden%0d%0aX: y", "a b=hidden", "a:b=hidden"}) {
    EXPECT_THAT(error_of({kBase, "OTEL_EXPORTER_OTLP_HEADERS=" + headers}),
                testing::AllOf(HasSubstr("OTEL_EXPORTER_OTLP_HEADERS"), Not(HasSubstr("hidden"))));
  }
}

TEST(TraceConfigTest, HeadersAndAttributesArePercentEncodedPairs) {
  const TraceConfig config =
      config_of({kBase, "OTEL_EXPORTER_OTLP_HEADERS=key=a%20b, other = c ,=none,bare",
                 "OTEL_RESOURCE_ATTRIBUTES=team=ml,service.name=from-attributes"});
  EXPECT_THAT(config.headers, ElementsAre(Pair("key", "a b"), Pair("other", "c")));
  EXPECT_THAT(config.attributes,
              ElementsAre(Pair("service.name", "from-attributes"), Pair("team", "ml")));
}

TEST(TraceConfigTest, TheServiceName) {
  EXPECT_THAT(config_of({kBase}).attributes, ElementsAre(Pair("service.name", "cpprun")));
  EXPECT_THAT(
      config_of({kBase, "OTEL_RESOURCE_ATTRIBUTES=service.name=a", "OTEL_SERVICE_NAME=trainer"})
          .attributes,
      ElementsAre(Pair("service.name", "trainer")));
}

TEST(TraceConfigTest, TheNumberOfAttributesHasALimit) {
  std::string all;
  for (size_t i = 0; i < 3 * limits::kTraceAttributes; ++i) all += std::to_string(i) + "=x,";
  EXPECT_THAT(config_of({kBase, "OTEL_RESOURCE_ATTRIBUTES=" + all}).attributes,
              SizeIs(limits::kTraceAttributes + 1));
}

TEST(TraceConfigTest, TheParentDecidesWhetherATraceIsRecorded) {
  const TraceConfig config = config_of({kBase, "TRACEPARENT=" + traceparent()});
  ASSERT_TRUE(config.parent);
  EXPECT_EQ(config.parent->trace_id, kTrace);
  EXPECT_EQ(config.parent->span_id, kSpan);
  EXPECT_TRUE(is_off({kBase, "TRACEPARENT=" + traceparent("00")}));
  EXPECT_FALSE(config_of({kBase, "TRACEPARENT=nonsense"}).parent);
}

TEST(TraceParentTest, TheFormOfTheRecommendation) {
  EXPECT_TRUE(parse_traceparent(traceparent()));
  EXPECT_TRUE(parse_traceparent(traceparent("03"))->is_sampled);
  const std::string ids = std::string(kTrace) + "-" + kSpan;
  EXPECT_TRUE(parse_traceparent("cc-" + ids + "-01-of-a-later-version"));
  for (const std::string& bad : std::vector<std::string>{
           std::string(),
           "ff-" + ids + "-01",                                 // no version
           "00-" + ids + "-01-more",                            // not in version 00
           "00-" + ids,                                         // no flags
           "00-" + ids + "-0x",                                 // flags are hex digits
           "00-" + std::string(32, '0') + "-" + kSpan + "-01",  // an invalid id
           "00-" + std::string(kTrace) + "-" + std::string(16, '0') + "-01",
           "00-" + std::string(31, 'a') + "-" + kSpan + "-01",
           "00-" + std::string(32, 'A') + "-" + kSpan + "-01",  // lower case only
       }) {
    EXPECT_FALSE(parse_traceparent(bad)) << bad;
  }
}

TEST(TraceIdsTest, AllNodesComputeTheSameIds) {
  const TraceIds a(std::nullopt, "key");
  const TraceIds b(std::nullopt, "key");
  EXPECT_EQ(a.trace(), b.trace());
  EXPECT_EQ(a.round(RoundNumber(2)), b.round(RoundNumber(2)));
  EXPECT_NE(a.round(RoundNumber(2)), a.round(RoundNumber(3)));
  EXPECT_NE(a.job(), a.round(RoundNumber(2)));
  EXPECT_NE(a.trace(), TraceIds(std::nullopt, "other").trace());
  EXPECT_EQ(a.parent_of_job(), "");
}

TEST(TraceIdsTest, WorkersGetAValidParent) {
  const TraceIds ids(std::nullopt, "key");
  const auto parent = parse_traceparent(ids.traceparent(RoundNumber(2)));
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace_id, ids.trace());
  EXPECT_EQ(parent->span_id, ids.round(RoundNumber(2)));
}

TEST(TraceIdsTest, AParentsTraceContinues) {
  const TraceIds ids(parse_traceparent(traceparent()), "key");
  EXPECT_EQ(ids.trace(), kTrace);
  EXPECT_EQ(ids.parent_of_job(), kSpan);
}

}  // namespace
}  // namespace cpprun
