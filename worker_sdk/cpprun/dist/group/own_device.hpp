// Chooses a rank's device and makes it current, like torch.cuda.set_device(LOCAL_RANK) in Python.
// Private to dist. Includes no CUDA header: it uses c10's device guards, which the CUDA library
// registers.
#pragma once

#include <optional>
#include <string>

#include <c10/core/Device.h>

namespace cpprun::dist {

// `wanted` if it has an index; cuda:<local rank> if `backend` (resolved, as in parse_backend) has
// nccl; otherwise none, because tensors may then be on any device.
std::optional<c10::Device> own_device(const std::string& backend,
                                      const std::optional<c10::Device>& wanted, int local_rank);

// Makes `device` the current device of this thread. Returns false and does nothing if it does not
// exist: a launcher that shows each worker one GPU has chosen already.
bool use_device(const c10::Device& device);

}  // namespace cpprun::dist
