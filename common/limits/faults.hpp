// Limits of fault injection.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpprun::limits {

inline constexpr size_t kFaultPlanBytes = 1 << 20;
inline constexpr size_t kFaultsPerPlan = 256;
inline constexpr int64_t kFaultInjections = 10'000;  // of one fault in a job
inline constexpr size_t kFaultsInReport = 100'000;   // injections; later ones are not reported
inline constexpr size_t kFaultPermitRequests = 256;  // of one node, unanswered

}  // namespace cpprun::limits
