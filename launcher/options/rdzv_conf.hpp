// --rdzv-conf: "key=value,..." into RendezvousConf.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"

namespace cpprun {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

// Only the form. Quotes around the whole or around one word are dropped: they come from scripts
// that quote twice.
Result<KeyValues> split_rdzv_conf(std::string_view text);

// Refuses a store_type other than tcp. Comes before the endpoint is read: with `file` that is a
// path, and an error about its host would hide the reason.
Status check_store_type(std::string_view conf);

// The values, but store_type. With Backend::Static `timeout` is the time to wait for all nodes;
// otherwise it is without effect, as under torchrun. Warnings (unknown keys) are added to
// `warnings`. What is for etcd alone is read by read_etcd_conf().
Result<RendezvousConf> read_rdzv_conf(std::string_view text, Backend backend,
                                      std::vector<std::string>& warnings);

}  // namespace cpprun
