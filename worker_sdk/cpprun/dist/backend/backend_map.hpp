// What a backend string means: device types, their backends, and this rank's device. Private to
// dist.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

namespace cpprun::dist {

// In the order in which the backends are made; it is the same on all ranks.
using BackendMap = std::vector<std::pair<c10::DeviceType, std::string>>;

// "gloo" serves cpu and cuda, "nccl" serves cuda; "cpu:gloo,cuda:nccl" is literal. Throws
// DistArgumentError for anything else.
BackendMap parse_backend(const std::string& backend);

// The backend for "auto" and "".
std::string automatic_backend(bool has_gpu);

// c10d's default timeout of collectives on this backend.
std::chrono::milliseconds default_timeout(const std::string& backend);

// `wanted` if it has an index; cuda:<local rank> if `backend` (resolved, as in parse_backend) has
// nccl; otherwise none, because tensors may then be on any device.
std::optional<c10::Device> own_device(const std::string& backend,
                                      const std::optional<c10::Device>& wanted, int local_rank);

// `device`, or the only one where a launcher shows each process a single device under the number 0.
c10::Device visible_device(const c10::Device& device, int count);
int device_count(c10::DeviceType type);  // 0: LibTorch has no support for it

// Makes `device` the current device of this thread, like torch.cuda.set_device(LOCAL_RANK) in
// Python. Includes no CUDA header: uses c10's device guards, which the CUDA library registers.
// Returns false and does nothing if it does not exist: a launcher that shows each worker one GPU
// has chosen already.
bool use_device(const c10::Device& device);

}  // namespace cpprun::dist
