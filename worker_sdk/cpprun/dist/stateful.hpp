/// @file
/// StateDict: the state of an object as Snapshot keeps it. Python counterpart: the dict that
/// state_dict() returns.
///
/// Snapshot::track accepts any class with state_dict() and load_state_dict() that returns and takes
/// a StateDict, a std::map<std::string, double>, or JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include <ATen/core/Tensor.h>

namespace cpprun {

/// One entry of a StateDict.
using StateValue = std::variant<int64_t, double, std::string, at::Tensor>;
/// The state of an object, by name: what state_dict() returns.
using StateDict = std::map<std::string, StateValue>;

}  // namespace cpprun
