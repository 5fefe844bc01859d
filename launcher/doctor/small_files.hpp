// Small files of /proc and /sys, read whole. For the probes' own sources.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun::doctor {

// At most 64 KiB, without white space at its ends; nothing if it can't be read.
std::optional<std::string> read_small_file(const std::string& path);

// The names in a folder that are meant, sorted; empty if it can't be read.
using IsMeant = bool (*)(std::string_view name);
std::vector<std::string> list_folder(const std::string& path, IsMeant is_meant);

}  // namespace cpprun::doctor
