#include "rendezvous/server/descriptor_limits.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "common/limits/server.hpp"
#include "common/log/log.hpp"

namespace cpprun {

size_t connections_within_limit(size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const auto all = static_cast<size_t>(std::min<rlim_t>(limit.rlim_cur, SIZE_MAX));
  return std::min(wanted, all - std::min(limits::kDescriptorsKept, all / 4));
}

void log_out_of_descriptors() {
  static bool is_logged = false;
  if (std::exchange(is_logged, true)) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string enough = std::to_string(limits::kConnections);
  log::error("out of file descriptors (limit " + std::to_string(limit.rlim_cur) +
             "): new connections are turned away; one is needed per worker and agent, so raise the "
             "hard limit before the start: ulimit -Hn " +
             enough + " as root, or LimitNOFILE=" + enough + " in a systemd unit");
}

}  // namespace cpprun
