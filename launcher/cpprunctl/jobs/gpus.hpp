// The GPUs of this machine as nvidia-smi reports them, for `top`. Without nvidia-smi there are
// none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time.hpp"

namespace cpprun::ctl {

struct Gpu {
  std::string index;
  std::string name;
  std::string percent;  // utilization: share of the last sample period in which a kernel ran
  std::string used;     // MiB
  std::string total;    // MiB
};
// Parses `nvidia-smi --query-gpu=index,name,utilization.gpu,memory.used,memory.total
// --format=csv,noheader,nounits`; skips malformed lines. Pure.
std::vector<Gpu> parse_gpus(const std::string& csv);
// A table with an empty line before it; "" without GPUs. Pure.
std::string gpus_text(const std::vector<Gpu>& gpus);

// Runs nvidia-smi. Empty if it is missing or takes longer than `limit`, when it is killed.
std::vector<Gpu> gpus_here(Duration limit);

}  // namespace cpprun::ctl
