// What can be read off a machine before a job starts there. Plain data: the probes fill it
// (probe.hpp), run_checks() reads it (checks.hpp). What could not be read is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/time.hpp"

namespace cpprun::doctor {

struct DiskSpace {  // of one file system
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  // for this user
};

// Limits of this process and of its control group; the workers inherit them.
struct LimitFacts {
  uint64_t open_files = 0;  // RLIMIT_NOFILE, the soft one
  uint64_t open_files_most = 0;
  std::optional<uint64_t> most_tasks;  // pids.max of the control group
  bool is_delegated = false;           // we may create groups in our control group
  int ptrace_scope = 0;                // kernel.yama.ptrace_scope
  bool is_root = false;
};

struct MachineFacts {
  int kernel_major = 0;
  int kernel_minor = 0;
  int cpus = 0;                            // that this process may use
  std::optional<DiskSpace> shared_memory;  // /dev/shm
  std::optional<DiskSpace> temp_folder;
  std::string temp_path;
  std::optional<bool> is_clock_synchronised;
};

struct DeviceFacts {
  std::vector<std::string> files;       // /dev/nvidia0, …
  std::vector<std::string> unreadable;  // those of `files` that this user may not open
  std::string driver;                   // version; "" without a driver
  std::optional<std::string> visible;   // CUDA_VISIBLE_DEVICES
};

// The machine's own host name, as the resolver here sees it.
struct NameFacts {
  std::string host_name;
  std::vector<std::string> addresses;  // numeric; empty if the name does not resolve
  Duration took{0};
};

struct AddressAttempt {
  std::string address;  // numeric
  std::string error;    // "" if the connection succeeded
  Duration took{0};
};

// The rendezvous endpoint, as seen from here.
struct EndpointFacts {
  std::string host;
  uint16_t port = 0;
  std::string resolve_error;             // "" if it has addresses
  std::string own_address;               // an address of this machine: this node would host
  std::string port_owner;                // the process that listens there, if the address is ours
  bool is_port_taken = false;            // likewise
  std::vector<AddressAttempt> attempts;  // if the endpoint is another machine
  uint16_t ephemeral_first = 0;          // ports that outgoing connections draw from
  uint16_t ephemeral_last = 0;
};

// A trial run of a snapshot's steps: write, fsync, rename, fsync of the folder.
struct FolderFacts {
  std::string path;
  std::string error;  // which step failed and why; "" if all succeeded
  Duration fsync_took{0};
  std::optional<DiskSpace> disk_space;
};

struct Facts {
  int nproc = 1;  // workers that would run here
  LimitFacts limits;
  MachineFacts machine;
  DeviceFacts devices;
  NameFacts name;
  std::optional<EndpointFacts> endpoint;
  std::optional<FolderFacts> snapshots;
};

}  // namespace cpprun::doctor
