#include "cpprun/nn/parallel/sdk_ranks.hpp"

#include "cpprun/dist/init/rank_key.hpp"

namespace cpprun::nn::parallel {

// Looks for the keys that ranks of this SDK set when they register
// (dist/init/rank_registration.hpp). They did so before the group formed, so all keys exist by now.
std::vector<int> sdk_ranks(const dist::ProcessGroup& group) {
  dist::Store store = group.store();
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (store.check({dist::rank_key(rank)})) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace cpprun::nn::parallel
