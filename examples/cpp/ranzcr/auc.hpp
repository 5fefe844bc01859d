// Area under the ROC curve of a whole validation set.
#pragma once

#include <ATen/core/Tensor.h>

namespace ranzcr {

// The mean over all columns (labels) that have both classes, as the competition scores; NaN if none
// has. `scores` and `labels`: n x labels, on the CPU. Ties count half, as in sklearn.
double mean_auc(const at::Tensor& scores, const at::Tensor& labels);

}  // namespace ranzcr
