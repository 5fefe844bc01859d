#include "cpprun/snapshot/save/device_copy.hpp"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>

namespace cpprun::snapshot {
namespace {

// A stream whose work runs after the work that is now in the current stream.
c10::Stream stream_behind_current(c10::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  const c10::Stream side = guard.getStreamFromGlobalPool(device);
  c10::Event so_far(device.type());
  so_far.record(guard.getStream(device));
  so_far.block(side);
  return side;
}

}  // namespace

DeviceCopyCalls device_copy_calls() {
  return {
      .make_pinned =
          [](int64_t bytes) {
            return at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
          },
      .start = [](const at::Tensor& into,
                  const at::Tensor& from) { into.copy_(from, /*non_blocking=*/true); },
  };
}

DeviceCopy::DeviceCopy(c10::Device device, DeviceCopyCalls calls)
    : calls_(std::move(calls)),
      side_(stream_behind_current(device)),
      pieces_{Piece{calls_.make_pinned(kPiece), c10::Event(device.type())},
              Piece{calls_.make_pinned(kPiece), c10::Event(device.type())}} {}

void DeviceCopy::add(const at::Tensor& from, std::byte* to) {
  for (int64_t done = 0; done < from.numel();) {
    Piece& piece = pieces_[next_];
    next_ = 1 - next_;
    empty(piece);
    piece.bytes = std::min(kPiece, from.numel() - done);
    {
      const c10::StreamGuard guard(side_);
      calls_.start(piece.pinned.narrow(0, 0, piece.bytes), from.narrow(0, done, piece.bytes));
    }
    piece.copied.record(side_);
    piece.to = to + done;
    done += piece.bytes;
  }
}

void DeviceCopy::empty(Piece& piece) {
  if (piece.to == nullptr) return;
  piece.copied.synchronize();
  std::memcpy(piece.to, piece.pinned.const_data_ptr(), static_cast<size_t>(piece.bytes));
  piece.to = nullptr;
}

void DeviceCopy::finish() {
  for (Piece& piece : pieces_) empty(piece);
}

void DeviceCopies::add(const at::Tensor& from, std::byte* to) {
  const c10::Device device = from.device();
  const auto [entry, is_new] = copies_.try_emplace({device.type(), device.index()});
  if (is_new) {
    try {
      entry->second = std::make_unique<DeviceCopy>(device);
    } catch (const c10::Error&) {  // the plain copy throws if the device is really unusable
    }
  }
  if (entry->second) return entry->second->add(from, to);
  at::from_blob(to, {from.numel()}, at::kByte).copy_(from);
}

void DeviceCopies::finish() {
  for (auto& [device, copy] : copies_) {
    if (copy) copy->finish();
  }
}

}  // namespace cpprun::snapshot
