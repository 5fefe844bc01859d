#include "launcher/doctor/quick.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "launcher/doctor/probe.hpp"

namespace cpprun::doctor {
namespace {

constexpr std::array<std::string_view, 6> kQuick = {"kernel", "files", "tasks",
                                                    "gpus",   "shm",   "temp"};

}  // namespace

std::vector<Finding> quick_findings(Facts facts) {
  if (facts.devices.files.empty() && facts.devices.driver.empty()) facts.devices.visible.reset();
  std::vector<Finding> found = judge(facts);
  std::erase_if(found, [](const Finding& finding) {
    const bool is_quick = std::ranges::find(kQuick, finding.check) != kQuick.end();
    return !is_quick || finding.level < Level::Warning;
  });
  return found;
}

Facts quick_facts(int nproc) {
  Facts facts;
  facts.nproc = nproc;
  facts.limits = probe_limits("");
  facts.machine = probe_machine();
  facts.devices = probe_devices("");
  return facts;
}

}  // namespace cpprun::doctor
