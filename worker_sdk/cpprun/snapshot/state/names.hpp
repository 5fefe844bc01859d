// Matches the names of parameters in a file with those of a module. Pure. Private to snapshot.
//
// Python's DDP prefixes every name with "module.". torch.compile prefixes the names of the module
// that it compiled with "_orig_mod."; this may be a submodule. align() removes these prefixes, but
// keeps equal names that belong to the module itself.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cpprun/snapshot/state_dict.hpp"  // strip_prefix()

namespace cpprun::snapshot {

// Maps each of `wanted` that the file has, with or without prefixes, to its name in the file.
std::map<std::string, std::string> align(const std::vector<std::string>& in_file,
                                         const std::set<std::string>& wanted);

}  // namespace cpprun::snapshot
