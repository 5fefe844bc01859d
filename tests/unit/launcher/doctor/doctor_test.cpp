// The doctor's report on a machine: a healthy one, and the same with one fault at a time.
#include "launcher/doctor/checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "launcher/doctor/probe.hpp"
#include "tests/support/temp_folder.hpp"

namespace cpprun::doctor {
namespace {

constexpr uint64_t kGiB = 1 << 30;

Facts healthy() {
  Facts f;
  f.nproc = 2;
  f.limits = {4096, 4096, std::nullopt, true, 0, false};
  f.machine.kernel_major = 6;
  f.machine.kernel_minor = 1;
  f.machine.cpus = 8;
  f.machine.shared_memory = DiskSpace{8 * kGiB, 8 * kGiB};
  f.machine.temp_folder = DiskSpace{8 * kGiB, 8 * kGiB};
  f.machine.temp_path = "/tmp";
  f.machine.is_clock_synchronised = true;
  f.devices = {{"/dev/nvidia0", "/dev/nvidia1"}, {}, "550.54", std::nullopt};
  f.name = {"n1", {"10.0.0.1"}, {}};
  f.endpoint = EndpointFacts{"n1", 29400, "", "10.0.0.1", "", false, {}, 32768, 60999};
  f.snapshots =
      FolderFacts{"/snap", "", std::chrono::milliseconds(3), DiskSpace{9 * kGiB, 9 * kGiB}};
  return f;
}

// Check, level and text of every result that is not good.
std::vector<std::string> complaints(const Facts& facts) {
  std::vector<std::string> found;
  for (const Finding& finding : run_checks(facts)) {
    if (finding.level == Level::Good) continue;
    EXPECT_FALSE(finding.cure.empty()) << finding.check;
    found.push_back(std::string(finding.check) + " " + std::string(name(finding.level)) + ": " +
                    finding.text);
  }
  return found;
}

TEST(Doctor, ReportsNothingOnAHealthyMachine) {
  EXPECT_THAT(complaints(healthy()), testing::IsEmpty());
  EXPECT_EQ(run_checks(healthy()).size(), 12U);
}

struct Fault {
  const char* name;
  std::function<void(Facts&)> make;
  const char* text;  // how the one finding begins
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class DoctorFault : public testing::TestWithParam<Fault> {};

TEST_P(DoctorFault, IsReportedAloneWithACure) {
  Facts facts = healthy();
  GetParam().make(facts);
  EXPECT_THAT(complaints(facts), testing::ElementsAre(testing::StartsWith(GetParam().text)));
}

const Fault kFaults[] = {
    {"OldKernel", [](Facts& f) { f.machine.kernel_major = 4; }, "kernel problem: Linux 4.1 can't"},
    {"FewFiles", [](Facts& f) { f.limits.open_files = 256; },
     "files warning: 256 open files for 2 workers that may need 320"},
    {"FewTasks", [](Facts& f) { f.limits.most_tasks = 100; },
     "tasks warning: 100 processes and threads in this control group; workers may need 144"},
    {"NoDelegation", [](Facts& f) { f.limits.is_delegated = false; }, "cgroup note: no control"},
    {"NoTracing", [](Facts& f) { f.limits.ptrace_scope = 2; },
     "tracing note: kernel.yama.ptrace_scope is 2"},
    {"SmallSharedMemory",
     [](Facts& f) {
       f.machine.shared_memory = DiskSpace{64 << 20, 63 << 20};
     },
     "shm warning: 63 MiB of 64 MiB free in /dev/shm"},
    {"NoSharedMemory", [](Facts& f) { f.machine.shared_memory.reset(); },
     "shm problem: there is no /dev/shm"},
    {"FullTemp", [](Facts& f) { f.machine.temp_folder->free_bytes = 5 << 20; },
     "temp warning: 5 MiB free in /tmp"},
    {"WildClock", [](Facts& f) { f.machine.is_clock_synchronised = false; }, "clock note: the"},
    {"UnknownName", [](Facts& f) { f.name.addresses.clear(); },
     "name warning: this machine's name 'n1' can't be resolved"},
    {"LoopbackName", [](Facts& f) { f.name.addresses = {"127.0.1.1"}; },
     "name note: 'n1' is 127.0.1.1"},
    {"SlowName", [](Facts& f) { f.name.took = std::chrono::seconds(5); },
     "name warning: 'n1' took 5000 ms"},
    {"ForbiddenGpu", [](Facts& f) { f.devices.unreadable = {"/dev/nvidia1"}; },
     "gpus problem: no permission to open /dev/nvidia1"},
    {"NoDriver", [](Facts& f) { f.devices.driver = ""; }, "gpus problem: 2 GPUs in /dev, but no"},
    {"NoDeviceFiles", [](Facts& f) { f.devices.files.clear(); },
     "gpus warning: NVIDIA driver 550.54, but no /dev/nvidia0"},
    {"VisibleBeyond", [](Facts& f) { f.devices.visible = "0,7"; },
     "gpus problem: CUDA_VISIBLE_DEVICES=0,7 names device 7, and the machine has 2 GPUs"},
    {"MoreWorkersThanGpus", [](Facts& f) { f.devices.visible = "1"; },
     "gpus warning: 2 workers but 1 visible GPU"},
    {"UnknownEndpoint", [](Facts& f) { f.endpoint->resolve_error = "the name 'n9' can't be"; },
     "endpoint problem: the name 'n9' can't be"},
    {"TakenPort",
     [](Facts& f) {
       f.endpoint->is_port_taken = true;
       f.endpoint->port_owner = "pid 7 (nc)";
     },
     "endpoint warning: n1:29400 is this machine, 10.0.0.1, and its port is taken by pid 7 (nc)"},
    {"EphemeralPort", [](Facts& f) { f.endpoint->port = 40000; },
     "endpoint note: n1:40000 is this machine, 10.0.0.1; outgoing connections draw from "
     "32768-60999"},
    {"SilentEndpoint",
     [](Facts& f) {
       f.endpoint->own_address = "";
       f.endpoint->attempts = {{"10.0.0.2", "Connection refused", std::chrono::milliseconds(1)}};
     },
     "endpoint warning: n1:29400 does not answer; tried 10.0.0.2 (Connection refused, 1 ms)"},
    {"ReadOnlyFolder", [](Facts& f) { f.snapshots->error = "/snap: a file can't be made: …"; },
     "snapshots problem: /snap: a file can't be made"},
    {"SlowDisk", [](Facts& f) { f.snapshots->fsync_took = std::chrono::seconds(2); },
     "snapshots warning: /snap: write, fsync 2000 ms"},
    {"FullDisk", [](Facts& f) { f.snapshots->disk_space->free_bytes = 7 << 20; },
     "snapshots warning: /snap has 7 MiB free"},
};
INSTANTIATE_TEST_SUITE_P(Each, DoctorFault, testing::ValuesIn(kFaults),
                         [](const auto& fault) { return fault.param.name; });

TEST(Doctor, AnEndpointOnAnotherHostIsAccepted) {
  Facts facts = healthy();
  facts.endpoint->own_address = "";
  facts.endpoint->attempts = {{"fe80::1", "No route to host", {}}, {"10.0.0.2", "", {}}};
  EXPECT_THAT(complaints(facts), testing::IsEmpty());
}

TEST(Doctor, ThePreflightReportsOnlyProblems) {
  EXPECT_THAT(preflight_findings(healthy()), testing::IsEmpty());
  Facts facts = healthy();
  facts.limits.is_delegated = false;                 // a note
  facts.name.addresses.clear();                      // not checked
  facts.snapshots->error = "/snap: it isn't there";  // not checked either
  facts.machine.shared_memory.reset();
  facts.limits.open_files = 100;
  const std::vector<Finding> found = preflight_findings(facts);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(std::pair(found[0].check, found[0].level),
            std::pair(std::string_view("files"), Level::Warning));
  EXPECT_EQ(std::pair(found[1].check, found[1].level),
            std::pair(std::string_view("shm"), Level::Problem));
}

TEST(Doctor, CpuJobsMayNameMissingGpus) {
  Facts facts = healthy();
  facts.devices = {{}, {}, "", "0,1"};
  EXPECT_THAT(preflight_findings(facts), testing::IsEmpty());
  EXPECT_THAT(complaints(facts), testing::SizeIs(1)) << "the doctor reports it";
}

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(DoctorProbe, ReadsASimulatedMachine) {
  const test::TempFolder machine;
  write(machine.path() + "/proc/self/cgroup", "4:memory:/other\n0::/job.slice\n");
  // As systemd's hybrid layout mounts version 2.
  write(machine.path() + "/proc/self/mountinfo",
        "30 29 0:26 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n");
  write(machine.path() + "/sys/fs/cgroup/unified/job.slice/pids.max", "77\n");
  write(machine.path() + "/sys/fs/cgroup/unified/job.slice/cgroup.procs", "");
  write(machine.path() + "/proc/sys/kernel/yama/ptrace_scope", "1\n");
  write(
      machine.path() + "/proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC version:  12\n");
  for (const char* name : {"nvidia1", "nvidia0", "nvidiactl", "nvidia-uvm", "null"}) {
    write(machine.path() + "/dev/" + name, "");
  }
  const LimitFacts limits = probe_limits(machine.path());
  EXPECT_EQ(limits.most_tasks, 77U);
  EXPECT_TRUE(limits.is_delegated);
  EXPECT_EQ(limits.ptrace_scope, 1);
  const DeviceFacts devices = probe_devices(machine.path());
  EXPECT_THAT(devices.files, testing::ElementsAre("/dev/nvidia0", "/dev/nvidia1"));
  EXPECT_EQ(devices.driver, "550.54.15");
}

TEST(DoctorProbe, HandlesAnEmptyMachine) {
  const test::TempFolder machine;
  EXPECT_EQ(probe_limits(machine.path()).most_tasks, std::nullopt);
  EXPECT_FALSE(probe_limits(machine.path()).is_delegated);
  EXPECT_EQ(probe_devices(machine.path()).driver, "");
}

TEST(DoctorProbe, TestsAFolderAndLeavesNoFile) {
  const test::TempFolder folder;
  const FolderFacts facts = probe_folder(folder.path());
  EXPECT_EQ(facts.error, "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THAT(probe_folder(folder.path() + "/none").error,
              testing::EndsWith("/none: a file can't be made: No such file or directory"));
}

}  // namespace
}  // namespace cpprun::doctor
