// How many things of the SDK this process has that a snapshot should keep: for its hints only.
#pragma once

#include <atomic>

namespace cpprun::dist {

struct LiveObjects {
  static inline std::atomic<int> schedulers{0};
  static inline std::atomic<int> samplers{0};
};

// Counts itself as long as it lives: a member of what is counted.
template <std::atomic<int>& kCount>
struct Counted {
  Counted() { ++kCount; }
  Counted(const Counted&) { ++kCount; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --kCount; }
};

}  // namespace cpprun::dist
