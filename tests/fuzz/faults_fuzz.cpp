// Arbitrary bytes as a fault plan: rejected, or the same after writing and reading it again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/faults/plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cpprun::faults;
  const auto plan = parse_plan({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!plan) return 0;
  const auto again = parse_plan(encode(*plan), "fuzz");
  if (!again || *again != *plan) std::abort();
  return 0;
}
