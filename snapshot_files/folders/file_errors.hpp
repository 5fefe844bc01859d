// Errors of system calls on files, with a hint at the cure. Private.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun::snapshot_files {

// "can't write /a/b: No space left on device; free some there or name another folder".
Error file_error(const std::string& doing, const std::string& path, int errno_value);

}  // namespace cpprun::snapshot_files
