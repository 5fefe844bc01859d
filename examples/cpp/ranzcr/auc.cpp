#include "examples/cpp/ranzcr/auc.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <torch/torch.h>

namespace ranzcr {
namespace {

// The share of pairs (one sample with the label, one without) that the scores order correctly.
std::optional<double> auc(const at::Tensor& scores, const at::Tensor& labels) {
  std::vector<std::pair<double, bool>> all;  // score, has the label
  for (int64_t i = 0; i < scores.numel(); ++i)
    all.emplace_back(scores[i].item<double>(), labels[i].item<double>() > 0.5);
  std::sort(all.begin(), all.end());
  double right = 0, below = 0, with = 0;  // correct pairs; samples so far without, with the label
  for (size_t start = 0, end = 0; start < all.size(); start = end) {
    double equal_with = 0, equal_without = 0;
    for (; end < all.size() && all[end].first == all[start].first; ++end)
      ++(all[end].second ? equal_with : equal_without);
    right += equal_with * (below + equal_without / 2);
    below += equal_without;
    with += equal_with;
  }
  if (with == 0 || below == 0) return {};
  return right / (with * below);
}

}  // namespace

double mean_auc(const at::Tensor& scores, const at::Tensor& labels) {
  double sum = 0, columns = 0;
  for (int64_t i = 0; i < labels.size(1); ++i) {
    const auto column = auc(scores.select(1, i), labels.select(1, i));
    if (!column) continue;
    sum += *column;
    ++columns;
  }
  return columns > 0 ? sum / columns : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace ranzcr
