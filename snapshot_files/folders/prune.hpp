// Removal of folders. Private.
#pragma once

#include <string>

#include "common/result.hpp"
#include "snapshot_files/folders/file_layer.hpp"

namespace cpprun::snapshot_files {

// Removes a file, or a folder and the files in it. Subfolders stay and cause an error.
Status remove_tree(FileLayer& files, const std::string& path);

}  // namespace cpprun::snapshot_files
