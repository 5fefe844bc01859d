#include "cpprun/snapshot/state/names.hpp"

#include <algorithm>

namespace cpprun {

std::vector<std::string> strip_prefix(const std::vector<std::string>& names,
                                      const std::string& prefix) {
  std::vector<std::string> stripped;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) return names;
    stripped.push_back(name.substr(prefix.size()));
  }
  return stripped;
}

namespace snapshot {
namespace {

size_t common(const std::vector<std::string>& names, const std::set<std::string>& wanted) {
  return static_cast<size_t>(
      std::ranges::count_if(names, [&](const auto& name) { return wanted.contains(name); }));
}

// Removes the components that torch.compile adds within a name.
std::string without_compiled(std::string name) {
  constexpr std::string_view kPart = "_orig_mod.";
  for (size_t at = name.find(kPart); at != std::string::npos; at = name.find(kPart, at)) {
    const bool is_component = at == 0 || name[at - 1] == '.';
    is_component ? void(name.erase(at, kPart.size())) : void(++at);
  }
  return name;
}

}  // namespace

// A prefix is removed only if more names match without it, so that a module that really has a
// submodule called "module" keeps it.
std::map<std::string, std::string> align(const std::vector<std::string>& in_file,
                                         const std::set<std::string>& wanted) {
  std::vector<std::string> best = in_file, names = in_file;
  const auto consider = [&](const std::vector<std::string>& candidate) {
    if (common(candidate, wanted) > common(best, wanted)) best = candidate;
  };
  for (bool is_changed = true; is_changed && !names.empty();) {
    is_changed = false;
    for (const char* wrapper : {"module.", "_orig_mod."}) {
      auto stripped = strip_prefix(names, wrapper);
      if (stripped == names) continue;
      names = std::move(stripped);
      is_changed = true;
      consider(names);
    }
  }
  for (const auto& base : {in_file, names}) {
    std::vector<std::string> plain;
    std::ranges::transform(base, std::back_inserter(plain), without_compiled);
    consider(plain);
  }
  std::map<std::string, std::string> found;
  for (size_t i = 0; i < best.size(); ++i) {
    if (wanted.contains(best[i])) found.emplace(best[i], in_file[i]);
  }
  return found;
}

}  // namespace snapshot
}  // namespace cpprun
