// Limits of the spans that an agent sends by OTLP/HTTP.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

// A span has less than 2 KiB; a restart has about ten. More of them wait only while the collector
// does not answer, and then the newest are dropped.
inline constexpr size_t kSpansQueued = 512;
inline constexpr size_t kSpansPerRequest = 64;
inline constexpr size_t kSpanTextBytes = 500;   // of an attribute
inline constexpr size_t kTraceAttributes = 32;  // of OTEL_RESOURCE_ATTRIBUTES, and headers
// How long the end of a run waits for the last spans. A scheduler waits for the launcher.
inline constexpr Duration kTraceEndWait = std::chrono::seconds(5);

}  // namespace cpprun::limits
