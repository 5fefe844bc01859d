// The GPUs of this machine, as nvidia-smi tells of them: for `top`. Where there is no nvidia-smi
// there is nothing to tell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time.hpp"

namespace cpprun::ctl {

struct Gpu {
  std::string index;
  std::string name;
  std::string percent;  // of the last moments that a kernel ran
  std::string used;     // MiB
  std::string total;    // MiB
};
// The lines of `nvidia-smi --query-gpu=index,name,utilization.gpu,memory.used,memory.total
// --format=csv,noheader,nounits`; others are left out. Pure.
std::vector<Gpu> parse_gpus(const std::string& csv);
// A table, with an empty line before it; "" if there is none. Pure.
std::string gpus_text(const std::vector<Gpu>& gpus);

// Asks nvidia-smi, which is ended when it takes longer: then, and without one, nothing.
std::vector<Gpu> gpus_here(Duration limit);

}  // namespace cpprun::ctl
