// Reads the facts of this machine for judge(). Changes nothing but a trial file in the snapshot
// folder, which it removes. Blocks: names and connections take up to kProbeConnectTimeout each.
#pragma once

#include <optional>
#include <string>

#include "common/endpoint.hpp"
#include "launcher/doctor/facts.hpp"

namespace cpprun::doctor {

struct ProbeRequest {
  int nproc = 1;
  std::optional<Endpoint> endpoint;         // of the rendezvous
  std::optional<std::string> snapshot_dir;  // has to be there
  std::string root;  // in front of /dev, /proc, /sys: a made-up machine, for tests
};

Facts probe(const ProbeRequest& question);

// The parts; each fills its own struct. probe_limits, probe_machine, probe_devices: under 1 ms.
LimitFacts probe_limits(const std::string& root);
MachineFacts probe_machine();
DeviceFacts probe_devices(const std::string& root);
NameFacts probe_name();
EndpointFacts probe_endpoint(const Endpoint& endpoint, const std::string& root);
FolderFacts probe_folder(const std::string& path);

}  // namespace cpprun::doctor
