// SaveReport: rank 0 prints when saves begin to fail, and when they succeed again. Private to
// snapshot.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "common/result.hpp"

namespace cpprun::snapshot {

// Thread-safe.
class SaveReport {
 public:
  explicit SaveReport(bool is_first_rank) : is_first_rank_(is_first_rank) {}

  // Prints only changes of the outcome: a full disk fails every save for a long time.
  void add(int64_t step, const Status& outcome);

 private:
  const bool is_first_rank_;
  std::mutex mutex_;
  std::string last_error_;  // why the last save failed; empty if it succeeded
};

}  // namespace cpprun::snapshot
