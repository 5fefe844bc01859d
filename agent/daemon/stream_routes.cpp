#include "agent/daemon/stream_routes.hpp"

#include <utility>
#include <vector>

namespace cpprun {
namespace {

struct Routing {
  bool is_redirected = false;
  bool is_teed = false;
  bool is_shown = true;  // passes --local-ranks-filter
  bool is_lost = false;  // the log folder could not be created
};

StreamRoute plan(Routing routing, std::string file, const std::string& prefix,
                 const std::vector<std::string>& filters, std::string duplicate_file) {
  StreamRoute plan;
  if (routing.is_redirected || routing.is_teed) plan.file = std::move(file);
  // Output without a file goes to the console, even of filtered ranks: it must not be lost.
  const bool has_file = routing.is_redirected && !routing.is_lost;
  plan.to_console = (routing.is_shown && (routing.is_teed || !has_file)) ||
                    (routing.is_lost && (routing.is_redirected || routing.is_teed));
  if (routing.is_teed) {
    plan.prefix = prefix;
    plan.duplicate_filters = filters;
    if (!filters.empty() && !routing.is_lost) plan.duplicate_file = std::move(duplicate_file);
  }
  return plan;
}

bool passes_filter(const LogConfig& config, int local_rank) {
  return !config.local_ranks_filter || config.local_ranks_filter->contains(local_rank);
}

}  // namespace

StreamRoutes route_streams(const LogConfig& config, const LogFolder& folder, int local_rank,
                           const std::string& prefix) {
  StreamBits redirects = config.redirects.at(static_cast<size_t>(local_rank));
  StreamBits tee = config.tee.at(static_cast<size_t>(local_rank));
  const bool is_shown = passes_filter(config, local_rank);
  const bool is_lost = folder.lacks_attempt();
  StreamRoutes plans;
  plans.out = plan({redirects.has_out(), tee.has_out(), is_shown, is_lost},
                   folder.stream_file(local_rank, "stdout.log"), prefix,
                   config.duplicate_stdout_filters, folder.attempt_file("filtered_stdout.log"));
  plans.err = plan({redirects.has_err(), tee.has_err(), is_shown, is_lost},
                   folder.stream_file(local_rank, "stderr.log"), prefix,
                   config.duplicate_stderr_filters, folder.attempt_file("filtered_stderr.log"));
  return plans;
}

bool shows_stderr(const LogConfig& config, int local_rank) {
  const auto rank = static_cast<size_t>(local_rank);
  const bool goes_there = config.tee.at(rank).has_err() || !config.redirects.at(rank).has_err();
  return goes_there && passes_filter(config, local_rank);
}

bool hides_output(const LogConfig& config) {
  for (size_t rank = 0; rank < config.redirects.size(); ++rank) {
    if ((config.redirects[rank].bits & ~config.tee.at(rank).bits) != 0) return true;
  }
  return false;
}

}  // namespace cpprun
