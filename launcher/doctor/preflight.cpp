#include "launcher/doctor/preflight.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "launcher/doctor/probe.hpp"

namespace cpprun::doctor {
namespace {

constexpr std::array<std::string_view, 6> kQuick = {"kernel", "files", "tasks",
                                                    "gpus",   "shm",   "temp"};

// Most of the time would go into reading /dev, so it is read only where GPUs are likely.
bool may_have_gpus() {
  return ::access("/dev/nvidia0", F_OK) == 0 || ::access("/proc/driver/nvidia", F_OK) == 0;
}

}  // namespace

std::vector<Finding> preflight_findings(Facts facts) {
  if (facts.devices.files.empty() && facts.devices.driver.empty()) facts.devices.visible.reset();
  std::vector<Finding> found = run_checks(facts);
  std::erase_if(found, [](const Finding& finding) {
    const bool is_quick = std::ranges::find(kQuick, finding.check) != kQuick.end();
    return !is_quick || finding.level < Level::Warning;
  });
  return found;
}

Facts preflight_facts(int nproc) {
  Facts facts;
  facts.nproc = nproc;
  facts.limits = probe_limits("");
  facts.machine = probe_machine();
  if (may_have_gpus()) facts.devices = probe_devices("");
  return facts;
}

}  // namespace cpprun::doctor
