// Names of files that an untrusted file refers to. Pure.
#pragma once

#include <string_view>

namespace cpprun::archive {

// Whether `name` is that of a file in the same folder: it leads neither out of it nor into another.
inline bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace cpprun::archive
