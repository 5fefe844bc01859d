/// @file
/// Counts the objects of this process that a snapshot should track, for the hints of
/// cpprun::Snapshot.
#pragma once

#include <atomic>

namespace cpprun::dist {

struct LiveObjects {
  static inline std::atomic<int> schedulers{0};
  static inline std::atomic<int> samplers{0};
  static inline std::atomic<int> scalers{0};     ///< that are enabled
  static inline std::atomic<int> comm_hooks{0};  ///< that have a state
};

/// A member of a counted class; counts the living objects of that class.
template <std::atomic<int>& kCount>
struct Counted {
  Counted() { ++kCount; }
  Counted(const Counted&) { ++kCount; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --kCount; }
};

}  // namespace cpprun::dist
