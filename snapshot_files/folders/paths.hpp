// Paths of folders. Private.
#pragma once

#include <string>

namespace cpprun::snapshot_files {

// "runs/" -> "runs".
std::string without_slash(std::string path);
// "/a/b" -> "/a"; "b" -> ".".
std::string folder_of(const std::string& path);

}  // namespace cpprun::snapshot_files
