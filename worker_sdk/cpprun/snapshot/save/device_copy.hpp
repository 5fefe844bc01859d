// DeviceCopy: copies bytes of tensors on a device into host memory, through two pinned buffers and
// a stream of its own, so that the device fills one buffer while the CPU empties the other. Private
// to snapshot.
//
// Includes no CUDA header: streams and events are c10's. All copies come after the work that was in
// the device's current stream when the DeviceCopy was constructed. Tests check the order with a
// fake device, and results on a GPU (tests/gpu). One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

namespace cpprun::snapshot {

// The calls of LibTorch that it needs; tests replace them.
struct DeviceCopyCalls {
  // `bytes` of pinned CPU memory, as uint8. Throws c10::Error if the device has none.
  std::function<at::Tensor(int64_t bytes)> make_pinned;
  // Queues the copy in the current stream and returns without waiting for it.
  std::function<void(const at::Tensor& into, const at::Tensor& from)> start;
};
DeviceCopyCalls device_copy_calls();

class DeviceCopy {
 public:
  static constexpr int64_t kPiece = 16 << 20;  // bytes of each pinned buffer

  // Throws c10::Error if the device has no streams, events or pinned memory.
  explicit DeviceCopy(c10::Device device, DeviceCopyCalls calls = device_copy_calls());

  // `from`: uint8 of one dimension, on the device. It and `to` must stay valid until finish().
  void add(const at::Tensor& from, std::byte* to);
  // Waits until all added copies are complete.
  void finish();

 private:
  struct Piece {
    at::Tensor pinned;
    c10::Event copied;
    std::byte* to = nullptr;  // null: the buffer is free
    int64_t bytes = 0;
  };
  static void empty(Piece& piece);

  DeviceCopyCalls calls_;
  c10::Stream side_;
  std::array<Piece, 2> pieces_;
  size_t next_ = 0;
};

// One DeviceCopy for each device; a device without streams gets a plain, waiting copy.
class DeviceCopies {
 public:
  void add(const at::Tensor& from, std::byte* to);
  void finish();

 private:
  // Null for a device without streams, events or pinned memory.
  std::map<std::pair<c10::DeviceType, c10::DeviceIndex>, std::unique_ptr<DeviceCopy>> copies_;
};

}  // namespace cpprun::snapshot
