#include "cpprun/dist/objects/tensor_packing.hpp"

#include <algorithm>

namespace cpprun::dist {

bool is_plain(at::ScalarType type) {
  constexpr at::ScalarType kPlain[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar,
                                       at::kByte,  at::kInt,    at::kLong, at::kBool};
  return std::ranges::find(kPlain, type) != std::end(kPlain);
}

at::Tensor TensorPacking::flat(const at::Tensor& contiguous) const {
  const at::Tensor line = contiguous.view({-1});
  if (is_plain(line.scalar_type())) return line;
  if (line.is_complex()) return at::view_as_real(line).view({-1});
  return payload_ == Payload::Bytes ? line.view(at::kByte) : line;
}

at::Tensor TensorPacking::pack_input(const at::Tensor& tensor) const {
  const at::NoGradGuard no_grad;
  return flat(tensor.detach().resolve_conj().resolve_neg().contiguous());
}

at::Tensor TensorPacking::pack_output(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor target = tensor.detach();
  if (target.is_contiguous() && !target.is_conj() && !target.is_neg()) return flat(target);
  const at::Tensor dense = target.resolve_conj().resolve_neg().contiguous();
  copies_.emplace_back([target, dense] { target.copy_(dense); });
  return flat(dense);
}

std::vector<at::Tensor> TensorPacking::pack_input(const std::vector<at::Tensor>& tensors) const {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) all.push_back(pack_input(tensor));
  return all;
}

std::vector<at::Tensor> TensorPacking::pack_output(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) all.push_back(pack_output(tensor));
  return all;
}

std::function<void()> TensorPacking::finish() {
  if (steps_.empty() && copies_.empty()) return {};
  return [steps = std::move(steps_), copies = std::move(copies_)] {
    const at::NoGradGuard no_grad;
    for (const auto& step : steps) step();
    for (const auto& copy : copies) copy();
  };
}

}  // namespace cpprun::dist
