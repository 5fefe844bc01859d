#include "snapshot_files/folders/keep.hpp"

#include <algorithm>

namespace cpprun::snapshot_files {

std::vector<int64_t> steps_to_remove(std::vector<int64_t> complete, const KeepRule& rule,
                                     int64_t newest) {
  std::erase_if(complete, [newest](int64_t step) { return step > newest; });
  std::ranges::sort(complete);
  const size_t kept = std::min(std::max<size_t>(rule.last, 1), complete.size());
  complete.resize(complete.size() - kept);
  std::erase_if(complete,
                [&rule](int64_t step) { return rule.every > 0 && step % rule.every == 0; });
  return complete;
}

}  // namespace cpprun::snapshot_files
