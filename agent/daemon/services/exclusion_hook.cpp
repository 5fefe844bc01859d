#include "agent/daemon/services/exclusion_hook.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/process/diagnostics/user_command.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/log/log.hpp"
#include "common/text.hpp"

namespace cpprun {

ExclusionHook::~ExclusionHook() {
  if (!commands_.wait(limits::kExcludeHookEndTimeout)) {
    log::warning("--exclude-hook has not ended within " +
                 text::seconds(limits::kExcludeHookEndTimeout, 0));
  }
}

void ExclusionHook::on_message(const control::CoordinatorMessage& message) {
  const auto* records = std::get_if<control::HostRecords>(&message);
  if (records == nullptr) return;
  if (hosts_coordinator_ && !config_.exclude_hook.empty()) {
    run_for_excluded("exclude", *records, known_);
    run_for_excluded("readmit", known_, *records);
  }
  known_ = *records;
}

void ExclusionHook::run_for_excluded(const char* action, const control::HostRecords& in,
                                     const control::HostRecords& not_in) {
  const std::vector<std::string> others = not_in.excluded();
  for (const control::HostRecord& record : in.hosts) {
    if (record.is_excluded() && std::ranges::count(others, record.host) == 0) run(action, record);
  }
}

void ExclusionHook::run(const char* action, const control::HostRecord& host) {
  std::vector<std::string> command = config_.exclude_hook;
  command.insert(command.end(), {action, host.host, host.reason});
  const std::string name = "--exclude-hook (" + std::string(action) + " " + host.host + ")";
  const bool is_posted = commands_.post([command, token = token_, name] {
    const std::string why = run_user_command(command, token, limits::kExcludeHookTimeout);
    why.empty() ? log::info(name + " has ended") : log::warning(name + " failed: " + why);
  });
  if (!is_posted) log::warning(name + " is not run: too much waits");
}

}  // namespace cpprun
