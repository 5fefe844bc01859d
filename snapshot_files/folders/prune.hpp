// Takes folders away. Private.
#pragma once

#include <string>

#include "common/result.hpp"
#include "snapshot_files/folders/file_layer.hpp"

namespace cpprun::snapshot_files {

// A folder and the files in it, or a file. Folders within are left, and are an error.
Status remove_tree(FileLayer& files, const std::string& path);

}  // namespace cpprun::snapshot_files
