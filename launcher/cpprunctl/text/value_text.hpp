// A value of a tensor file in a few words: "float32 [1, 20]", "int 3". Pure.
#pragma once

#include <string>

#include "snapshot_files/pickle/value.hpp"

namespace cpprun::ctl {

// Text of a file without what a terminal would obey.
std::string clean(std::string text);

std::string value_text(const pickle::Value& value);

}  // namespace cpprun::ctl
