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

// The values. With Backend::Static `timeout` is the time to wait for all nodes; otherwise it is
// without effect, as under torchrun. Warnings (unknown keys) are added to `warnings`. What is for
// etcd alone is read by read_etcd_conf().
Result<RendezvousConf> read_rdzv_conf(std::string_view text, Backend backend,
                                      std::vector<std::string>& warnings);

}  // namespace cpprun
