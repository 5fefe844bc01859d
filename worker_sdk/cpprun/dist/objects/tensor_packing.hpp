// TensorPacking: converts tensors to the form that backends accept: flat, contiguous, of a
// supported dtype. Private to dist.
//
//   TensorPacking packing(Payload::Numbers);
//   at::Tensor out = packing.pack_output(output);   // a view of `output` if possible
//   call.start(async_op, [&] { ... out ... }, packing.finish());
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cpprun::dist {

// Numbers: for reductions; complex tensors become pairs. Bytes: for calls that only copy.
enum class Payload { Numbers, Bytes };

// Dtypes that all backends here accept: float16 to float64, bfloat16, (u)int8, int32, int64, bool.
bool is_plain(at::ScalarType type);

class TensorPacking {
 public:
  explicit TensorPacking(Payload payload) : payload_(payload) {}

  // For tensors that the call reads: a copy unless contiguous.
  at::Tensor pack_input(const at::Tensor& tensor) const;
  // For tensors that the call writes: unless contiguous, a copy that `finish` copies back.
  at::Tensor pack_output(const at::Tensor& tensor);
  std::vector<at::Tensor> pack_input(const std::vector<at::Tensor>& tensors) const;
  std::vector<at::Tensor> pack_output(const std::vector<at::Tensor>& tensors);

  // Adds a step that runs after the backend and before the copies back, in the order of calls.
  void afterwards(std::function<void()> step) { steps_.push_back(std::move(step)); }
  // All steps and copies as one function, without gradients; null if there are none.
  std::function<void()> finish();

 private:
  at::Tensor flat(const at::Tensor& contiguous) const;

  Payload payload_;
  std::vector<std::function<void()>> steps_;
  std::vector<std::function<void()>> copies_;
};

}  // namespace cpprun::dist
