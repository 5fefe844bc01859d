// --numa-binding: which CPUs each worker runs on, near its GPU. The modes are torch's
// (torch/numa/binding.py): worker i belongs to GPU i as the workers see them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

// What /sys tells of the machine; all numbers are the kernel's.
struct Topology {
  struct Cpu {
    int node = 0;
    int socket = 0;
    int core = 0;   // the least CPU of the physical core
    int cache = 0;  // the least CPU that shares the largest cache
  };
  std::map<int, Cpu> cpus;     // those that we may use
  std::vector<int> gpu_nodes;  // of each GPU, in the order in which workers count them
};

// Pure: the CPUs of the worker of `gpu`, sorted. `mode`: node, socket, exclusive or core-complex.
// Errors name what is missing.
Result<std::vector<int>> cpus_near(const Topology& topology, std::string_view mode, int gpu);

// Pure: "0-2,4", as /sys writes sets of numbers. What is none counts as empty.
std::set<int> parse_ranges(std::string_view text);

// The machine below `root` ("" for the real one): its sys and proc. `visible` is
// CUDA_VISIBLE_DEVICES, `pretended` CPPRUN_TEST_GPUS: so many GPUs near node 0; `allowed`: the CPUs
// of this process.
Topology read_topology(const std::string& root, const std::set<int>& allowed,
                       const std::optional<std::string>& visible,
                       const std::optional<int>& pretended);

// CPUs that this process may use.
std::set<int> own_cpus();

}  // namespace cpprun
