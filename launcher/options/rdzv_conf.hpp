// Parses --rdzv-conf ("key=value,...") into RendezvousConf, and its keys for etcd into EtcdConfig.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/parsed_options.hpp"

namespace cpprun {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

// Splits without checking the keys. Drops quotes around the whole text or one value: scripts that
// quote twice leave them.
Result<KeyValues> split_rdzv_conf(std::string_view text);
// The last value of `key`, or of `other`, a second name of the same setting; nullptr: not given.
const std::string* find_value(const KeyValues& conf, std::string_view key,
                              std::string_view other = "");
// An error of kind BadValue: "--rdzv-conf key=value: why".
Error bad_conf(const std::string& key, const std::string& value, const std::string& why);

// Rejects a store_type other than tcp. Call it before the endpoint is read: with `file` that is a
// path, and an error about its host would hide the real problem.
Status check_store_type(const KeyValues& conf);

// Everything but store_type. With Backend::Static `timeout` is the time to wait for all nodes;
// other backends ignore it, as under torchrun. Appends warnings (unknown keys) to `warnings`.
// read_etcd() reads the keys of etcd alone.
Result<RendezvousConf> read_rdzv_conf(const KeyValues& values, Backend backend,
                                      std::vector<std::string>& warnings);

// For --rdzv-backend=etcd: its members (--rdzv-endpoint), keys, TLS and user (etcd.cpp). The
// password comes from CPPRUN_ETCD_PASSWORD: every user of the machine can read command lines.
Result<EtcdConfig> read_etcd(const ParsedOptions& options, const KeyValues& conf,
                             const Environment& environment);

}  // namespace cpprun
