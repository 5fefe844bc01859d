// The choice of the rank whose state all ranks take over at the begin of a round. Pure. Private to
// elastic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpprun/snapshot/job_history.hpp"

namespace cpprun::detail {

// What a rank sends to the others about its state.
struct StateClaim {
  int64_t completed = 0;
  // It may have begun to change its objects: it gives nothing, and takes the state of another rank.
  bool is_torn = false;
  std::string bucket_orders = {};
  snapshot::JobHistory::Record history = {};
};

struct Donor {
  int rank = 0;
  int64_t completed = 0;   // steps that its state contains
  int64_t lost_steps = 0;  // that only torn ranks have
  bool is_needed = false;  // some rank is behind or torn
};

// The lowest rank that has completed most steps and is not torn. `claims`: of all ranks. Throws
// std::runtime_error if all ranks are torn.
Donor choose_donor(const std::vector<StateClaim>& claims);

}  // namespace cpprun::detail
