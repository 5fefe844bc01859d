#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>

#include "common/machine/files.hpp"
#include "common/machine/own_cgroups.hpp"
#include "common/text.hpp"
#include "launcher/doctor/probe.hpp"

namespace cpprun::doctor {
namespace {

std::optional<uint64_t> number_in(const std::string& path) {
  const std::optional<std::string> text = read_file(path);
  const std::optional<int64_t> number = text ? text::parse_int(*text) : std::nullopt;
  if (!number || *number < 0) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

// Our cgroup of version 2 as a folder; "": there is none.
std::string own_group(const std::string& root) {
  if (root.empty()) return own_cgroups().unified.path;
  const auto text = [&root](const char* path) { return read_file(root + path).value_or(""); };
  const std::string path =
      parse_own_cgroups(text("/proc/self/cgroup"), text("/proc/self/mountinfo")).unified.path;
  return path.empty() ? "" : root + path;
}

bool is_writable(const std::string& path) { return ::access(path.c_str(), W_OK) == 0; }

std::optional<bool> clock_state() {
  timex state{};  // modes = 0: read only
  const int result = ::adjtimex(&state);
  if (result < 0) return std::nullopt;
  return result != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …": the first word that starts
// with a digit and contains a dot.
std::string driver_version(const std::string& root) {
  const std::string all = read_file(root + "/proc/driver/nvidia/version").value_or("");
  for (const std::string& word : text::split(all.substr(0, all.find('\n')), ' ')) {
    const bool is_number = !word.empty() && word.front() >= '0' && word.front() <= '9';
    if (is_number && word.find('.') != std::string::npos) return word;
  }
  return all.empty() ? "" : "of unknown version";
}

}  // namespace

std::optional<DiskSpace> disk_space_of(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return std::nullopt;
  const uint64_t block = info.f_frsize;
  return DiskSpace{info.f_blocks * block, info.f_bavail * block};
}

LimitFacts probe_limits(const std::string& root) {
  LimitFacts found;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    found.open_files = files.rlim_cur;
    found.open_files_most = files.rlim_max;
  }
  if (const std::string group = own_group(root); !group.empty()) {
    found.most_tasks = number_in(group + "/pids.max");
    found.is_delegated = is_writable(group) && is_writable(group + "/cgroup.procs");
  }
  found.ptrace_scope =
      static_cast<int>(number_in(root + "/proc/sys/kernel/yama/ptrace_scope").value_or(0));
  found.is_root = ::geteuid() == 0;
  return found;
}

MachineFacts probe_machine() {
  MachineFacts found;
  utsname system{};
  if (::uname(&system) == 0) {
    const std::vector<std::string> version = text::split(system.release, '.');
    found.kernel_major = static_cast<int>(text::parse_int(version[0]).value_or(0));
    if (version.size() > 1) {
      found.kernel_minor = static_cast<int>(text::parse_int(version[1]).value_or(0));
    }
  }
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) == 0) found.cpus = CPU_COUNT(&cpus);
  found.shared_memory = disk_space_of("/dev/shm");
  const char* temp = std::getenv("TMPDIR");
  found.temp_path = temp != nullptr && *temp != '\0' ? temp : "/tmp";
  found.temp_folder = disk_space_of(found.temp_path);
  found.is_clock_synchronised = clock_state();
  return found;
}

DeviceFacts probe_devices(const std::string& root) {
  DeviceFacts found;
  for (const std::string& name : list_gpu_files(root + "/dev")) {
    found.files.push_back("/dev/" + name);
    if (::access((root + "/dev/" + name).c_str(), R_OK | W_OK) != 0) {
      found.unreadable.push_back("/dev/" + name);
    }
  }
  found.driver = driver_version(root);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) found.visible = visible;
  return found;
}

// Most of the time would go into reading /dev, so it is read only where GPUs are likely.
Facts preflight_facts(int nproc) {
  Facts facts;
  facts.nproc = nproc;
  facts.limits = probe_limits("");
  facts.machine = probe_machine();
  const bool may_have_gpus =
      ::access("/dev/nvidia0", F_OK) == 0 || ::access("/proc/driver/nvidia", F_OK) == 0;
  if (may_have_gpus) facts.devices = probe_devices("");
  return facts;
}

Facts probe(const ProbeRequest& question) {
  Facts facts;
  facts.nproc = question.nproc;
  facts.limits = probe_limits(question.root);
  facts.machine = probe_machine();
  facts.devices = probe_devices(question.root);
  facts.name = probe_name();
  if (question.endpoint) facts.endpoint = probe_endpoint(*question.endpoint, question.root);
  if (question.snapshot_dir) facts.snapshots = probe_folder(*question.snapshot_dir);
  return facts;
}

}  // namespace cpprun::doctor
