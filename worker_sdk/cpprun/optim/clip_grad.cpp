#include "cpprun/optim/clip_grad.hpp"

#include <ATen/ATen.h>
#include <ATen/native/ForeachUtils.h>

#include <stdexcept>

namespace cpprun::optim {
namespace {

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

// Groups by device and dtype with the function that Python uses: the norm of the norms depends on
// their order.
std::vector<std::vector<at::Tensor>> grouped(const std::vector<at::Tensor>& gradients) {
  std::vector<std::vector<at::Tensor>> groups;
  if (gradients.empty()) return groups;
  const std::vector<std::optional<at::Tensor>> list(gradients.begin(), gradients.end());
  for (const auto& [key, tensors_and_indices] :
       at::native::_group_tensors_by_first_tensors_device_and_dtype({list}, false)) {
    auto& group = groups.emplace_back();
    for (const auto& tensor : tensors_and_indices.first[0]) group.push_back(tensor.value());
  }
  return groups;
}

at::Tensor total_norm_of(const std::vector<at::Tensor>& gradients, double norm_type) {
  if (gradients.empty()) return at::zeros({});
  std::vector<at::Tensor> norms;
  for (const auto& group : grouped(gradients)) {
    for (const at::Tensor& norm : at::_foreach_norm(group, norm_type)) {
      norms.push_back(norm.to(gradients[0].device()));
    }
  }
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

}  // namespace

at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           double norm_type, bool error_if_nonfinite) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  const at::Tensor total_norm = total_norm_of(gradients, norm_type);
  if (error_if_nonfinite && !at::isfinite(total_norm).item<bool>()) {
    throw std::runtime_error(
        "The total norm of order " + std::to_string(norm_type) +
        " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this "
        "error and scale the gradients by the non-finite norm anyway, set "
        "`error_if_nonfinite=false`");
  }
  // Python computes number / tensor as this product; a division has other last bits. Multiplying by
  // 1 costs less than reading the factor from a GPU.
  const at::Tensor scale =
      at::clamp(((total_norm + 1e-6).reciprocal() * max_norm), std::nullopt, 1.0);
  for (const auto& group : grouped(gradients)) {
    at::_foreach_mul_(group, scale.to(group[0].device()));
  }
  return total_norm;
}

void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value) {
  const at::NoGradGuard no_grad;
  for (const auto& group : grouped(gradients_of(parameters))) {
    at::_foreach_clamp_min_(group, -clip_value);
    at::_foreach_clamp_max_(group, clip_value);
  }
}

}  // namespace cpprun::optim
