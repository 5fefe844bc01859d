#include "cpprun/elastic/donor.hpp"

#include <algorithm>
#include <stdexcept>

namespace cpprun::detail {

Donor choose_donor(const std::vector<StateClaim>& claims) {
  int donor = -1;
  int64_t newest_of_all = 0;
  for (size_t rank = 0; rank < claims.size(); ++rank) {
    const StateClaim& claim = claims[rank];
    newest_of_all = std::max(newest_of_all, claim.completed);
    if (claim.is_torn) continue;
    if (donor < 0 || claim.completed > claims[static_cast<size_t>(donor)].completed) {
      donor = static_cast<int>(rank);
    }
  }
  if (donor < 0) throw std::runtime_error("elastic: no worker has the state of a whole step");
  const StateClaim& chosen = claims[static_cast<size_t>(donor)];
  const auto lacks_it = [&](const StateClaim& each) {
    return each.is_torn || each.completed != chosen.completed;
  };
  return {.rank = donor,
          .completed = chosen.completed,
          .lost_steps = newest_of_all - chosen.completed,
          .is_needed = std::any_of(claims.begin(), claims.end(), lacks_it)};
}

}  // namespace cpprun::detail
