// A short description of a value in a tensor file: "float32 [1, 20]", "int 3". Pure.
#pragma once

#include <string>

#include "snapshot_files/pickle/value.hpp"

namespace cpprun::ctl {

// Replaces control characters, which a terminal would execute.
std::string clean(std::string text);

std::string value_text(const pickle::Value& value);

}  // namespace cpprun::ctl
