// DeviceCopy: bytes of tensors on a device into memory of ours. They go over two pieces of pinned
// memory and a stream of their own, so that the device's copy of one piece runs beside our copy of
// the other. Private to snapshot.
//
// It names no device's headers: streams and events are c10's, which whoever brings the device
// provides. Work that stands in the device's current stream when the object is made comes before
// all copies. Never run on hardware so far; its order is tested with a device that is none. One
// thread.
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

// What it needs of LibTorch; tests bring their own.
struct DeviceCopyCalls {
  // CPU memory, uint8, of so many bytes, that the device reaches by itself. Throws c10::Error where
  // there is none.
  std::function<at::Tensor(int64_t bytes)> make_pinned;
  // Puts the copy into the current stream, and returns without waiting for it.
  std::function<void(const at::Tensor& into, const at::Tensor& from)> start;
};
DeviceCopyCalls device_copy_calls();

class DeviceCopy {
 public:
  static constexpr int64_t kPiece = 16 << 20;  // bytes of each of the two

  // Throws c10::Error where the device has no streams, events or pinned memory.
  explicit DeviceCopy(c10::Device device, DeviceCopyCalls calls = device_copy_calls());

  // `from`: uint8 of one dimension, on the device; neither it nor `to` goes before finish().
  void add(const at::Tensor& from, std::byte* to);
  // Returns when everything is where it belongs.
  void finish();

 private:
  struct Piece {
    at::Tensor pinned;
    c10::Event copied;
    std::byte* to = nullptr;  // null: it is free
    int64_t bytes = 0;
  };
  static void empty(Piece& piece);

  DeviceCopyCalls calls_;
  c10::Stream side_;
  std::array<Piece, 2> pieces_;
  size_t next_ = 0;
};

// One for each device; where a device has none, a plain copy that waits.
class DeviceCopies {
 public:
  void add(const at::Tensor& from, std::byte* to);
  void finish();

 private:
  // By type and index; null: it has none.
  std::map<std::pair<c10::DeviceType, c10::DeviceIndex>, std::unique_ptr<DeviceCopy>> copies_;
};

}  // namespace cpprun::snapshot
