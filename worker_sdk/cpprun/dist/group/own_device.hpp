// The device that a rank works on, made current when it joins: as torch.cuda.set_device(LOCAL_RANK)
// does in Python. Private to dist. It names no CUDA header: devices are reached through c10's
// guards, which whoever brings the device registers.
#pragma once

#include <optional>
#include <string>

#include <c10/core/Device.h>

namespace cpprun::dist {

// `wanted`, if it has an index; cuda:<local rank> where `backend` (resolved, as in parse_backend)
// has nccl; none for other backends, whose tensors may lie anywhere.
std::optional<c10::Device> own_device(const std::string& backend,
                                      const std::optional<c10::Device>& wanted, int local_rank);

// Makes it the current device of this thread. Does nothing, and returns false, where there is no
// such device: a launcher that shows each worker one GPU has made the choice already.
bool use_device(const c10::Device& device);

}  // namespace cpprun::dist
