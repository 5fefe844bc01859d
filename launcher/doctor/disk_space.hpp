// Size and free space of a file system. Private to the probes.
#pragma once

#include <optional>
#include <string>

#include "launcher/doctor/facts.hpp"

namespace cpprun::doctor {

// Of the file system that holds `path`; nothing if it cannot be read.
std::optional<DiskSpace> disk_space_of(const std::string& path);

}  // namespace cpprun::doctor
