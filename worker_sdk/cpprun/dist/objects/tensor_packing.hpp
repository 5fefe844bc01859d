// Tensors as backends take them: flat, contiguous, of a dtype that can be sent. Private to dist.
//
//   Parcel parcel;
//   at::Tensor out = parcel.arriving(output);   // a view of `output` where that is possible
//   call.start(async_op, [&] { ... out ... }, parcel.finish());
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cpprun::dist {

// What a reduction sees keeps its numbers: complex ones as pairs. What is only moved may be bytes.
enum class Payload { Numbers, Bytes };

// All backends here take it as it is: float16 to float64, bfloat16, (u)int8, int32, int64, bool.
bool is_plain(at::ScalarType type);

class TensorPacking {
 public:
  explicit TensorPacking(Payload payload) : payload_(payload) {}

  // Only read: a copy if it is not contiguous.
  at::Tensor pack_input(const at::Tensor& tensor) const;
  // Written: if it is not contiguous, a copy that `finish` copies back.
  at::Tensor pack_output(const at::Tensor& tensor);
  std::vector<at::Tensor> pack_input(const std::vector<at::Tensor>& tensors) const;
  std::vector<at::Tensor> pack_output(const std::vector<at::Tensor>& tensors);

  // To be done after the backend and before copies back, in this order.
  void afterwards(std::function<void()> step) { steps_.push_back(std::move(step)); }
  // All steps as one, without gradients; null when there are none.
  std::function<void()> finish();

 private:
  at::Tensor flat(const at::Tensor& contiguous) const;

  Payload payload_;
  std::vector<std::function<void()>> steps_;
  std::vector<std::function<void()>> copies_;
};

}  // namespace cpprun::dist
