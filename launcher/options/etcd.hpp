// etcd's members, keys, TLS and user from --rdzv-endpoint, --rdzv-conf and the environment.
#pragma once

#include "agent/core/config.hpp"
#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/parsed_options.hpp"

namespace cpprun {

// For --rdzv-backend=etcd. The password comes from CPPRUN_ETCD_PASSWORD: every user of the machine
// can read command lines.
Result<EtcdConfig> read_etcd(const ParsedOptions& options, const Environment& environment);

}  // namespace cpprun
