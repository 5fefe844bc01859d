// Parses a backend string into device types and backends. Private to dist.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/DeviceType.h>

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

}  // namespace cpprun::dist
