#include "agent/daemon/stream_plans.hpp"

namespace cpprun {
namespace {

struct Wish {
  bool is_redirected = false;
  bool is_teed = false;
  bool is_shown = true;  // passes --local-ranks-filter
};

StreamPlan plan(Wish wish, std::string file, const std::string& prefix,
                const std::vector<std::string>& filters, std::string duplicate_file) {
  StreamPlan plan;
  if (wish.is_redirected || wish.is_teed) plan.file = std::move(file);
  plan.to_console = wish.is_shown && (wish.is_teed || !wish.is_redirected);
  if (wish.is_teed) {
    plan.prefix = prefix;
    plan.duplicate_filters = filters;
    if (!filters.empty()) plan.duplicate_file = std::move(duplicate_file);
  }
  return plan;
}

}  // namespace

StreamPlans plan_streams(const LogConfig& config, const LogFolder& folder, int local_rank,
                         const std::string& prefix) {
  StreamBits redirects = config.redirects.at(static_cast<size_t>(local_rank));
  StreamBits tee = config.tee.at(static_cast<size_t>(local_rank));
  bool is_shown = !config.local_ranks_filter || config.local_ranks_filter->contains(local_rank);
  StreamPlans plans;
  plans.out = plan({redirects.has_out(), tee.has_out(), is_shown},
                   folder.stream_file(local_rank, "stdout.log"), prefix,
                   config.duplicate_stdout_filters, folder.attempt_file("filtered_stdout.log"));
  plans.err = plan({redirects.has_err(), tee.has_err(), is_shown},
                   folder.stream_file(local_rank, "stderr.log"), prefix,
                   config.duplicate_stderr_filters, folder.attempt_file("filtered_stderr.log"));
  return plans;
}

}  // namespace cpprun
