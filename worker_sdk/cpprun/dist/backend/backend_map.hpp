// Which backend serves which device: what a backend string means. Private to dist.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/DeviceType.h>

namespace cpprun::dist {

// In the order in which the backends are made, which is the same on all ranks.
using BackendMap = std::vector<std::pair<c10::DeviceType, std::string>>;

// "gloo" serves cpu and cuda, "nccl" cuda; "cpu:gloo,cuda:nccl" is taken as it is. Throws
// DistArgumentError for anything else.
BackendMap parse_backend(const std::string& backend);

// What "auto" and "" stand for.
std::string automatic_backend(bool has_gpu);

// Torch's default for collectives on this backend.
std::chrono::milliseconds default_timeout(const std::string& backend);

}  // namespace cpprun::dist
