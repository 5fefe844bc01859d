// Small files of /proc and /sys, read whole. Private to the probes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun::doctor {

// At most 64 KiB, without white space at both ends; nothing if it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);

// The names in a folder that `is_meant` accepts, sorted; empty if it cannot be read.
using IsMeant = bool (*)(std::string_view name);
std::vector<std::string> list_folder(const std::string& path, IsMeant is_meant);

}  // namespace cpprun::doctor
