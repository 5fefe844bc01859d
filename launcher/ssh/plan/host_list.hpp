// Lists of hosts as users write them: --hosts, and hostfiles in the formats of OpenMPI and
// DeepSpeed ("host slots=8") and Horovod ("host:8" or "host slots=8"), which may be mixed. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun::ssh {

struct Host {
  std::string target;        // for ssh: "a", "user@a", "fd00::1"
  std::optional<int> slots;  // workers; unset: --nproc-per-node
  bool operator==(const Host&) const = default;

  std::string name() const;  // the target without a user
};

// "a:8,user@b,[fd00::1]:8".
Result<std::vector<Host>> parse_hosts(std::string_view text);

// `file`: its name, which errors show together with the line.
Result<std::vector<Host>> parse_hostfile(std::string_view text, const std::string& file);

// DeepSpeed's --include and --exclude for whole hosts: names separated by "@" or ",". One of the
// two at most.
Result<std::vector<Host>> select_hosts(std::vector<Host> hosts, std::string_view include,
                                       std::string_view exclude);

}  // namespace cpprun::ssh
