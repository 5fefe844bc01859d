// Names of parameters as files have them, and as a module has them. Pure. Private to snapshot.
//
// Python's DDP puts "module." before every name, torch.compile "_orig_mod." before those of what it
// compiled, which may be a part of the module. Both are taken away where they were put there, and
// only there: see align().
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun::snapshot {

// The names without `prefix`, if all have it; else as they are. Only the first one is taken away:
// of "module.module_list.0.weight" remains "module_list.0.weight".
std::vector<std::string> strip_prefix(const std::vector<std::string>& names,
                                      std::string_view prefix);

// The file's name of each of `wanted` that the file has, whatever wrappers were saved with it.
std::map<std::string, std::string> align(const std::vector<std::string>& in_file,
                                         const std::set<std::string>& wanted);

}  // namespace cpprun::snapshot
