// Parses --rdzv-conf ("key=value,...") into RendezvousConf.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"

namespace cpprun {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

// Splits without checking the keys. Drops quotes around the whole text or one value: scripts that
// quote twice leave them.
Result<KeyValues> split_rdzv_conf(std::string_view text);

// Rejects a store_type other than tcp. Call it before the endpoint is read: with `file` that is a
// path, and an error about its host would hide the real problem.
Status check_store_type(std::string_view conf);

// Everything but store_type. With Backend::Static `timeout` is the time to wait for all nodes;
// other backends ignore it, as under torchrun. Appends warnings (unknown keys) to `warnings`.
// read_etcd() reads the keys of etcd alone.
Result<RendezvousConf> read_rdzv_conf(std::string_view text, Backend backend,
                                      std::vector<std::string>& warnings);

}  // namespace cpprun
