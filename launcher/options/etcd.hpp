// What --rdzv-endpoint, --rdzv-conf and the environment say of etcd: its members, keys, TLS, user.
#pragma once

#include "agent/core/config.hpp"
#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/parsed_options.hpp"

namespace cpprun {

// For --rdzv-backend=etcd. The password is in CPPRUN_ETCD_PASSWORD: what is on a command line
// everybody on the machine can read.
Result<EtcdConfig> read_etcd(const ParsedOptions& options, const Environment& environment);

}  // namespace cpprun
