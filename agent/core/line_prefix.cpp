#include "agent/core/line_prefix.hpp"

#include "agent/core/string_template.hpp"

namespace cpprun::agent {

std::string line_prefix(const AgentConfig& config, const control::RankAssignment& assignment,
                        const LaunchContext& context, int local_rank) {
  constexpr const char* kDefault = "[${role_name}${local_rank}]:";
  const Macros macros{{"role_name", config.workers.role},
                      {"local_rank", std::to_string(local_rank)},
                      {"rank", std::to_string(assignment.base_rank + local_rank)},
                      {"hostname", context.host_name.substr(0, context.host_name.find('.'))}};
  return safe_substitute(config.logs.prefix_template.value_or(kDefault), macros);
}

}  // namespace cpprun::agent
