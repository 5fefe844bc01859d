#include "launcher/doctor/checks.hpp"

#include <algorithm>
#include <array>

#include "common/endpoint.hpp"
#include "common/text.hpp"

namespace cpprun::doctor {
namespace {

using enum Level;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;
// A PyTorch process opens about 40 files, a data loader 10; a rank also connects to its peers.
constexpr uint64_t kFilesPerWorker = 128;
constexpr uint64_t kFilesOfAgent = 64;
// Threads of one PyTorch process besides one per core: backends, loaders, autograd.
constexpr uint64_t kTasksPerWorker = 64;
// Data loaders and NCCL share memory between processes; Docker's default of 64 MiB is too small.
constexpr uint64_t kSharedMemory = kGiB;
constexpr uint64_t kTempDiskSpace = 256 * kMiB;  // logs of a failed run
constexpr uint64_t kSnapshotDiskSpace = kGiB;
constexpr Duration kSlowName = std::chrono::milliseconds(500);
constexpr Duration kSlowSync = std::chrono::seconds(1);

std::string size(uint64_t bytes) {
  if (bytes >= 10 * kGiB) return std::to_string(bytes / kGiB) + " GiB";
  return std::to_string(bytes / kMiB) + " MiB";
}

std::string milliseconds(Duration time) {
  using std::chrono::duration_cast;
  return std::to_string(duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
}

Finding kernel(const Facts& f) {
  const std::string version =
      std::to_string(f.machine.kernel_major) + "." + std::to_string(f.machine.kernel_minor);
  // waitid on a pidfd: 5.4.
  if (std::pair(f.machine.kernel_major, f.machine.kernel_minor) < std::pair(5, 4)) {
    return {Problem, "Linux " + version + " can't wait on a pidfd", "use Linux 5.4 or newer"};
  }
  return {Good, "Linux " + version};
}

Finding open_files(const Facts& f) {
  const uint64_t need = kFilesOfAgent + kFilesPerWorker * static_cast<uint64_t>(f.nproc);
  const std::string text = std::to_string(f.limits.open_files) + " open files";
  if (f.limits.open_files >= need) return {Good, text};
  const bool can_raise = f.limits.open_files_most >= need;
  return {Warning,
          text + " for " + text::count(static_cast<size_t>(f.nproc), "worker") + " that may need " +
              std::to_string(need),
          can_raise ? "ulimit -n " + std::to_string(need)
                    : "raise the hard limit (now " + std::to_string(f.limits.open_files_most) +
                          "): LimitNOFILE= of the systemd unit, or limits.conf"};
}

Finding tasks(const Facts& f) {
  if (!f.limits.most_tasks) return {Good, "no limit on processes"};
  const uint64_t need = static_cast<uint64_t>(f.nproc) *
                        (kTasksPerWorker + static_cast<uint64_t>(std::max(f.machine.cpus, 1)));
  const std::string text = std::to_string(*f.limits.most_tasks) + " processes and threads";
  if (*f.limits.most_tasks >= need) return {Good, text};
  return {Warning, text + " in this control group; workers may need " + std::to_string(need),
          "raise pids.max: TasksMax= of the systemd unit, docker run --pids-limit"};
}

Finding cgroup(const Facts& f) {
  if (f.limits.is_delegated) return {Good, "may make control groups"};
  return {Note,
          "no control groups of our own: after kill -9 of cpprun, a process of a worker that has "
          "cleared its environment and left its session keeps running",
          "systemd-run --user --scope -p Delegate=yes cpprun …"};
}

Finding tracing(const Facts& f) {
  if (f.limits.is_root || f.limits.ptrace_scope == 0) {
    return {Good, "stacks of processes can be read"};
  }
  return {Note,
          "kernel.yama.ptrace_scope is " + std::to_string(f.limits.ptrace_scope) +
              ": debuggers can't read the stacks of a worker that hangs",
          "sysctl kernel.yama.ptrace_scope=0, as root"};
}

Finding shared_memory(const Facts& f) {
  if (!f.machine.shared_memory) {
    return {Problem, "there is no /dev/shm",
            "mount a tmpfs there: loaders with worker processes need it"};
  }
  const DiskSpace& disk_space = *f.machine.shared_memory;
  const std::string text =
      size(disk_space.free_bytes) + " of " + size(disk_space.total_bytes) + " free in /dev/shm";
  if (disk_space.free_bytes >= kSharedMemory) return {Good, text};
  return {Warning, text + "; data loaders and NCCL keep shared memory there",
          disk_space.total_bytes < kSharedMemory
              ? "docker run --shm-size=8g or --ipc=host; in Kubernetes an emptyDir with medium: "
                "Memory at /dev/shm"
              : "ls -l /dev/shm, and remove what dead processes left"};
}

Finding temp_folder(const Facts& f) {
  if (!f.machine.temp_folder) {
    return {Problem, "no temporary folder '" + f.machine.temp_path + "'",
            "set TMPDIR to a folder that exists"};
  }
  const std::string text =
      size(f.machine.temp_folder->free_bytes) + " free in " + f.machine.temp_path;
  if (f.machine.temp_folder->free_bytes >= kTempDiskSpace) return {Good, text};
  return {Warning, text + ", where logs go without --log-dir",
          "make room there, or set TMPDIR or --log-dir"};
}

Finding clock(const Facts& f) {
  if (f.machine.is_clock_synchronised.value_or(true)) {
    return {Good, "synchronised, or nothing known"};
  }
  return {Note,
          "the kernel reports that nothing keeps the clock right; cpprun does not rely on it, but "
          "times in the logs of several nodes will not agree",
          "install chrony, or timedatectl set-ntp true"};
}

Finding host_name(const Facts& f) {
  const std::string& own = f.name.host_name;
  if (f.name.addresses.empty()) {
    return {
        Warning,
        "this machine's name '" + own + "' can't be resolved: Gloo then listens on loopback only",
        "add it to /etc/hosts with the address that other nodes reach, or set GLOO_SOCKET_IFNAME"};
  }
  const std::string all = text::join(f.name.addresses, ", ");
  if (std::all_of(f.name.addresses.begin(), f.name.addresses.end(), is_loopback)) {
    return {Note,
            "'" + own + "' is " + all + ": with several nodes Gloo would offer that to the others",
            "give it the address of the network in /etc/hosts, or set GLOO_SOCKET_IFNAME"};
  }
  if (f.name.took > kSlowName) {
    return {Warning, "'" + own + "' took " + milliseconds(f.name.took),
            "repair the name server in /etc/resolv.conf, or add the names to /etc/hosts"};
  }
  return {Good, "'" + own + "' is " + all};
}

std::vector<std::string> visible_entries(const DeviceFacts& devices) {
  if (!devices.visible || text::strip(*devices.visible).empty()) return {};
  return text::split(*devices.visible, ',');
}

// Indices in CUDA_VISIBLE_DEVICES without a device: CUDA ends the list there without an error.
std::string beyond(const DeviceFacts& devices) {
  for (const std::string& entry : visible_entries(devices)) {
    const std::optional<int64_t> number = text::parse_int(entry);
    if (number && (*number < 0 || *number >= static_cast<int64_t>(devices.files.size()))) {
      return std::string(text::strip(entry));
    }
  }
  return "";
}

Finding devices(const Facts& f) {
  const DeviceFacts& d = f.devices;
  const std::string count = text::count(d.files.size(), "GPU");
  if (!d.unreadable.empty()) {
    return {Problem, "no permission to open " + text::join(d.unreadable, ", "),
            "join the group that owns it (ls -l " + d.unreadable.front() + ")"};
  }
  if (d.files.empty() != d.driver.empty()) {
    return d.driver.empty()
               ? Finding{Problem, count + " in /dev, but no NVIDIA driver",
                         "load it (modprobe nvidia), or run the container with --gpus all"}
               : Finding{Warning, "NVIDIA driver " + d.driver + ", but no /dev/nvidia0",
                         "nvidia-modprobe -u -c 0, or run the container with --gpus all"};
  }
  if (const std::string wrong = beyond(d); !wrong.empty()) {
    return {Problem,
            "CUDA_VISIBLE_DEVICES=" + *d.visible + " names device " + wrong +
                ", and the machine has " + count + ": CUDA ignores it and what follows",
            "unset it, or name existing ones"};
  }
  const std::vector<std::string> seen = visible_entries(d);
  if (!d.files.empty() && !seen.empty() && static_cast<size_t>(f.nproc) > seen.size()) {
    return {Warning,
            text::count(static_cast<size_t>(f.nproc), "worker") + " but " +
                text::count(seen.size(), "visible GPU"),
            "--nproc_per_node=gpu starts one per GPU"};
  }
  return {Good, d.files.empty() ? "none" : count + ", driver " + d.driver};
}

std::string endpoint_text(const EndpointFacts& e) { return e.host + ":" + std::to_string(e.port); }

Finding own_endpoint(const EndpointFacts& e) {
  const std::string text = endpoint_text(e) + " is this machine, " + e.own_address;
  if (e.is_port_taken) {
    const std::string holder = e.port_owner.empty() ? "" : " by " + e.port_owner;
    return {Warning, text + ", and its port is taken" + holder,
            "end it if it is no rendezvous of cpprun, or choose another port on all nodes"};
  }
  if (e.port >= e.ephemeral_first && e.port <= e.ephemeral_last) {
    return {Note,
            text + "; outgoing connections draw from " + std::to_string(e.ephemeral_first) + "-" +
                std::to_string(e.ephemeral_last) + " and may take its port",
            "choose one outside, such as 29400"};
  }
  return {Good, text + " and would host; the port is free"};
}

Finding other_endpoint(const EndpointFacts& e) {
  std::vector<std::string> failed;
  for (const AddressAttempt& attempt : e.attempts) {
    if (attempt.error.empty()) {
      return {Good, endpoint_text(e) + " answers at " + attempt.address + " after " +
                        milliseconds(attempt.took)};
    }
    failed.push_back(attempt.address + " (" + attempt.error + ", " + milliseconds(attempt.took) +
                     ")");
  }
  return {Warning, endpoint_text(e) + " does not answer; tried " + text::join(failed, ", "),
          "start its node first to distinguish a firewall from a rendezvous that is not there yet"};
}

Finding endpoint(const Facts& f) {
  if (!f.endpoint) return {Good, "not asked for (--rdzv-endpoint)"};
  if (!f.endpoint->resolve_error.empty()) {
    return {Problem, f.endpoint->resolve_error,
            "repair the name on this node, or give the address"};
  }
  return f.endpoint->own_address.empty() ? other_endpoint(*f.endpoint) : own_endpoint(*f.endpoint);
}

Finding snapshots(const Facts& f) {
  if (!f.snapshots) return {Good, "not asked for (--snapshot-dir)"};
  const FolderFacts& folder = *f.snapshots;
  if (!folder.error.empty()) {
    return {Problem, folder.error, "give a folder that exists and that this user may write to"};
  }
  const std::string text = folder.path + ": write, fsync " + milliseconds(folder.fsync_took) +
                           ", rename, fsync of the folder work";
  if (folder.disk_space && folder.disk_space->free_bytes < kSnapshotDiskSpace) {
    return {Warning, folder.path + " has " + size(folder.disk_space->free_bytes) + " free",
            "cpprunctl snapshot prune " + folder.path + " --keep 2, or another folder"};
  }
  if (folder.fsync_took > kSlowSync) {
    return {Warning, text, "save less often, or to a disk nearer by"};
  }
  return {Good, text};
}

struct Check {
  std::string_view name;
  Finding (*find)(const Facts&);
  bool is_quick = false;  // part of preflight_findings()
};
constexpr Check kChecks[] = {
    {"kernel", kernel, true},     {"files", open_files, true}, {"tasks", tasks, true},
    {"cgroup", cgroup},           {"tracing", tracing},        {"gpus", devices, true},
    {"shm", shared_memory, true}, {"temp", temp_folder, true}, {"clock", clock},
    {"name", host_name},          {"endpoint", endpoint},      {"snapshots", snapshots}};

Finding find(const Check& check, const Facts& facts) {
  Finding found = check.find(facts);
  found.check = check.name;
  return found;
}

}  // namespace

std::vector<Finding> run_checks(const Facts& facts) {
  std::vector<Finding> all;
  for (const Check& check : kChecks) all.push_back(find(check, facts));
  return all;
}

std::vector<Finding> preflight_findings(Facts facts) {
  if (facts.devices.files.empty() && facts.devices.driver.empty()) facts.devices.visible.reset();
  std::vector<Finding> found;
  for (const Check& check : kChecks) {
    if (check.is_quick) found.push_back(find(check, facts));
  }
  std::erase_if(found, [](const Finding& finding) { return finding.level < Warning; });
  return found;
}

bool is_well(const std::vector<Finding>& findings) {
  return std::ranges::count(findings, Problem, &Finding::level) == 0;
}

std::string_view name(Level level) {
  constexpr std::array<std::string_view, 4> kNames = {"ok", "note", "warning", "problem"};
  return kNames.at(static_cast<size_t>(level));
}

}  // namespace cpprun::doctor
