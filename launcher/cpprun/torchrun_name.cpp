#include "launcher/cpprun/torchrun_name.hpp"

#include "common/exit_code.hpp"

namespace cpprun {

bool is_called_torchrun(std::string_view name) {
  return name.substr(name.rfind('/') + 1) == "torchrun";
}

std::vector<std::string> with_torchrun_defaults(const std::vector<std::string>& args) {
  std::vector<std::string> all{"--worker-store=agent", "--failure-format=torchrun",
                               "--cluster=none"};
  all.insert(all.end(), args.begin(), args.end());
  return all;
}

int torchrun_exit_code(int code) { return code > kSignalBase ? kFailure : code; }

}  // namespace cpprun
