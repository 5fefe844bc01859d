#include "agent/daemon/services/exclusion_hook.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/process/diagnostics/user_command.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/log/log.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

bool is_excluded_in(const control::HostRecords& records, const std::string& host) {
  return std::ranges::any_of(records.hosts, [&host](const control::HostRecord& record) {
    return record.host == host && record.exclusion != control::Exclusion::None;
  });
}

}  // namespace

ExclusionHook::~ExclusionHook() {
  if (!commands_.wait(limits::kExcludeHookEndTimeout)) {
    log::warning("--exclude-hook has not ended within " +
                 text::seconds(limits::kExcludeHookEndTimeout, 0));
  }
}

void ExclusionHook::on_message(const control::CoordinatorMessage& message) {
  const auto* records = std::get_if<control::HostRecords>(&message);
  if (records == nullptr) return;
  if (hosts_coordinator_ && !config_.exclude_hook.empty()) on_change(known_, *records);
  known_ = *records;
}

void ExclusionHook::on_change(const control::HostRecords& before, const control::HostRecords& now) {
  for (const control::HostRecord& record : now.hosts) {
    const bool is_excluded = record.exclusion != control::Exclusion::None;
    if (is_excluded && !is_excluded_in(before, record.host)) run("exclude", record);
  }
  for (const control::HostRecord& record : before.hosts) {
    const bool was_excluded = record.exclusion != control::Exclusion::None;
    if (was_excluded && !is_excluded_in(now, record.host)) run("readmit", record);
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
