// Results go to stdout through print(); errors go through common/log.
#pragma once

#include <cstdio>
#include <string_view>

namespace cpprun::ctl {

inline void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace cpprun::ctl
