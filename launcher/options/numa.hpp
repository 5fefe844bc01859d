// --numa-binding: the CPUs of each worker, near its GPU. The modes are torch's
// (torch/numa/binding.py): worker i uses GPU i in the workers' numbering.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

// The topology from /sys; all ids are the kernel's.
struct Topology {
  struct Cpu {
    int node = 0;
    int socket = 0;
    int core = 0;   // the lowest CPU of the physical core
    int cache = 0;  // the lowest CPU that shares the largest cache
  };
  std::map<int, Cpu> cpus;     // those that we may use
  std::vector<int> gpu_nodes;  // NUMA node of each GPU, in the workers' numbering
};

// Pure: the sorted CPUs of the worker of `gpu`. `mode`: node, socket, exclusive or core-complex.
// Errors name what is missing.
Result<std::vector<int>> cpus_near(const Topology& topology, std::string_view mode, int gpu);

// Pure: "0-2,4", the format of sets in /sys. Malformed text counts as empty.
std::set<int> parse_ranges(std::string_view text);

// Reads sys and proc below `root` ("" for the real machine). `visible` is CUDA_VISIBLE_DEVICES;
// `pretended` (CPPRUN_TEST_GPUS) is a number of GPUs to assume near node 0; `allowed` are the CPUs
// of this process.
Topology read_topology(const std::string& root, const std::set<int>& allowed,
                       const std::optional<std::string>& visible,
                       const std::optional<int>& pretended);

// The CPUs that this process may use.
std::set<int> own_cpus();

}  // namespace cpprun
