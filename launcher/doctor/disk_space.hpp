// How much room a file system has. For the probes' own sources.
#pragma once

#include <optional>
#include <string>

#include "launcher/doctor/facts.hpp"

namespace cpprun::doctor {

// Of the file system that `path` is on; nothing if it can't be asked.
std::optional<DiskSpace> disk_space_of(const std::string& path);

}  // namespace cpprun::doctor
