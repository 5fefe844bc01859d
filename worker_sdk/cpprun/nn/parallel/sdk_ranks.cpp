#include "cpprun/nn/parallel/sdk_ranks.hpp"

#include "cpprun/dist/init/rank_key.hpp"

namespace cpprun::nn::parallel {

// The seats that the roll call of a group leaves in its store (dist/roll_call.hpp). They were taken
// before the group formed, so all are there by now.
std::vector<int> sdk_ranks(const dist::ProcessGroup& group) {
  dist::Store store = group.store();
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (store.check({dist::rank_key(rank)})) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace cpprun::nn::parallel
