// Reads the facts of this machine for run_checks(). Writes only a trial file in the snapshot folder
// and removes it. Blocks: lookups and connections take up to kProbeConnectTimeout each.
#pragma once

#include <optional>
#include <string>

#include "common/endpoint.hpp"
#include "launcher/doctor/facts.hpp"

namespace cpprun::doctor {

struct ProbeRequest {
  int nproc = 1;
  std::optional<Endpoint> endpoint;         // of the rendezvous
  std::optional<std::string> snapshot_dir;  // must exist
  std::string root;  // prefix of /dev, /proc, /sys: tests put a fake machine there
};

Facts probe(const ProbeRequest& question);

// The parts; each fills its own struct. The first three take less than 1 ms.
LimitFacts probe_limits(const std::string& root);
MachineFacts probe_machine();
DeviceFacts probe_devices(const std::string& root);
NameFacts probe_name();
EndpointFacts probe_endpoint(const Endpoint& endpoint, const std::string& root);
FolderFacts probe_folder(const std::string& path);
// Of the file system that holds `path`; nothing if it cannot be read.
std::optional<DiskSpace> disk_space_of(const std::string& path);

// The facts that preflight_findings() needs. Takes about a millisecond: without the network and
// without a trial file.
Facts preflight_facts(int nproc);

}  // namespace cpprun::doctor
