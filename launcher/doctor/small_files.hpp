// Small files of /proc and /sys, read whole. For the probes' own sources.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cpprun::doctor {

// At most 64 KiB, without white space at its ends; nothing if it can't be read.
std::optional<std::string> read_small_file(const std::string& path);

// Names in a folder, sorted; empty if it can't be read.
std::vector<std::string> list_folder(const std::string& path);

}  // namespace cpprun::doctor
