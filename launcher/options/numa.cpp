#include "launcher/options/numa.hpp"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/machine/files.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;
using Groups = std::map<int, std::vector<int>>;  // CPUs by the id of the resource that they share

constexpr int kCpusMax = CPU_SETSIZE;

Groups group(const std::vector<int>& cpus, const Topology& topology, int Topology::Cpu::*by) {
  Groups groups;
  for (int cpu : cpus) groups[topology.cpus.at(cpu).*by].push_back(cpu);
  return groups;
}

std::vector<int> cpus_where(const Topology& topology, int Topology::Cpu::*what, int value) {
  std::vector<int> found;
  for (const auto& [cpu, facts] : topology.cpus) {
    if (facts.*what == value) found.push_back(cpu);
  }
  return found;
}

// The GPU's index among the GPUs of its NUMA node, and their number.
std::pair<size_t, size_t> index_on_node(const Topology& topology, int gpu) {
  const auto begin = topology.gpu_nodes.begin();
  const int node = topology.gpu_nodes.at(static_cast<size_t>(gpu));
  return {static_cast<size_t>(std::count(begin, begin + gpu, node)),
          static_cast<size_t>(std::count(begin, topology.gpu_nodes.end(), node))};
}

// Divides the node's cores evenly and in order; the first GPUs get one of the remainder each.
Result<std::vector<int>> exclusive(const Topology& topology, const std::vector<int>& node_cpus,
                                   int gpu) {
  const auto [index, gpus] = index_on_node(topology, gpu);
  const Groups cores = group(node_cpus, topology, &Topology::Cpu::core);
  const size_t each = cores.size() / gpus;
  const size_t over = cores.size() % gpus;
  if (each == 0) {
    return Error{ErrorKind::BadValue, "--numa-binding=exclusive: " + text::count(gpus, "GPU") +
                                          " near a NUMA node with " +
                                          text::count(cores.size(), "core") +
                                          "\nhint: bind by node instead"};
  }
  auto core = std::next(cores.begin(), static_cast<long>(index * each + std::min(index, over)));
  std::vector<int> cpus;
  for (size_t left = each + (index < over ? 1 : 0); left > 0; --left, ++core) {
    cpus.insert(cpus.end(), core->second.begin(), core->second.end());
  }
  return cpus;
}

// Each GPU gets the CPUs of one cache, the largest group first; with more GPUs than caches the
// groups repeat.
std::vector<int> core_complex(const Topology& topology, const std::vector<int>& node_cpus,
                              int gpu) {
  const Groups by_cache = group(node_cpus, topology, &Topology::Cpu::cache);
  std::vector<std::pair<int, std::vector<int>>> groups(by_cache.begin(), by_cache.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return groups[index_on_node(topology, gpu).first % groups.size()].second;
}

std::string read_word(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return std::string(text::strip(text));
}

int read_number(const fs::path& path) {
  return static_cast<int>(std::max<int64_t>(0, text::parse_int(read_word(path)).value_or(0)));
}

int least_of(const fs::path& list, int cpu) {
  const std::set<int> cpus = parse_ranges(read_word(list));
  return cpus.empty() ? cpu : *cpus.begin();
}

int cache_of(const fs::path& cpu_folder, int cpu) {
  int best = 0;
  int shared_by = cpu;
  for (const std::string& name : list_folder(cpu_folder / "cache")) {
    if (!name.starts_with("index")) continue;
    const fs::path folder = cpu_folder / "cache" / name;
    const int level = read_number(folder / "level");
    if (read_word(folder / "type") == "Instruction" || level <= best) continue;
    best = level;
    shared_by = least_of(folder / "shared_cpu_list", cpu);
  }
  return shared_by;
}

struct Gpu {
  std::string address;  // on the PCI bus; the driver numbers the GPUs in its order
  std::string identity;
};

std::vector<Gpu> read_gpus(const std::string& root) {
  const fs::path folder = root + "/proc/driver/nvidia/gpus";
  std::vector<Gpu> gpus;
  for (const std::string& address : list_folder(folder)) {
    Gpu gpu{address, ""};
    std::ifstream file(folder / address / "information");
    for (std::string line; std::getline(file, line);) {
      constexpr std::string_view kIdentity = "GPU UUID:";
      if (line.starts_with(kIdentity)) gpu.identity = text::strip(line.substr(kIdentity.size()));
    }
    gpus.push_back(std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const Gpu& a, const Gpu& b) { return a.address < b.address; });
  return gpus;
}

// Like CUDA: the list ends at the first entry that does not exist.
std::vector<Gpu> only_visible(const std::vector<Gpu>& gpus,
                              const std::optional<std::string>& visible) {
  if (!visible) return gpus;
  std::vector<Gpu> left;
  for (const std::string& entry : text::split(*visible, ',')) {
    const std::string name(text::strip(entry));
    const std::optional<int64_t> number = text::parse_int(name);
    const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
      if (number) return &gpu - gpus.data() == *number;
      return !name.empty() && gpu.identity.starts_with(name);
    });
    if (found == gpus.end()) break;
    left.push_back(*found);
  }
  return left;
}

}  // namespace

std::set<int> parse_ranges(std::string_view text) {
  std::set<int> numbers;
  for (const std::string& range : text::split(text, ',')) {
    const size_t dash = range.find('-');
    const std::optional<int64_t> first = text::parse_int(range.substr(0, dash));
    const std::optional<int64_t> last =
        dash == std::string::npos ? first : text::parse_int(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= kCpusMax) continue;
    for (int64_t n = *first; n <= *last; ++n) numbers.insert(static_cast<int>(n));
  }
  return numbers;
}

Result<std::vector<int>> cpus_near(const Topology& topology, std::string_view mode, int gpu) {
  const std::string asked = "--numa-binding=" + std::string(mode) + ": ";
  if (gpu < 0 || static_cast<size_t>(gpu) >= topology.gpu_nodes.size()) {
    return Error{ErrorKind::BadValue, asked + "worker " + std::to_string(gpu) +
                                          " has no GPU to be near to, there are " +
                                          std::to_string(topology.gpu_nodes.size()) +
                                          "\nhint: start one worker per GPU"};
  }
  const int node = topology.gpu_nodes[static_cast<size_t>(gpu)];
  const std::vector<int> node_cpus = cpus_where(topology, &Topology::Cpu::node, node);
  if (node_cpus.empty()) {
    return Error{ErrorKind::BadValue, asked + "this process may use no CPU of NUMA node " +
                                          std::to_string(node) + ", which GPU " +
                                          std::to_string(gpu) + " is near to"};
  }
  if (mode == "node") return node_cpus;
  if (mode == "exclusive") return exclusive(topology, node_cpus, gpu);
  if (mode == "core-complex") return core_complex(topology, node_cpus, gpu);
  const int socket = topology.cpus.at(node_cpus.front()).socket;
  return cpus_where(topology, &Topology::Cpu::socket, socket);
}

Topology read_topology(const std::string& root, const std::set<int>& allowed,
                       const std::optional<std::string>& visible,
                       const std::optional<int>& pretended) {
  const fs::path system = root + "/sys/devices/system";
  Topology topology;
  for (const std::string& name : list_folder(system / "node")) {
    const std::optional<int64_t> node =
        name.starts_with("node") ? text::parse_int(name.substr(4)) : std::nullopt;
    if (!node) continue;
    for (int cpu : parse_ranges(read_word(system / "node" / name / "cpulist"))) {
      if (!allowed.contains(cpu)) continue;
      const fs::path folder = system / "cpu" / ("cpu" + std::to_string(cpu));
      topology.cpus[cpu] = {
          static_cast<int>(*node), read_number(folder / "topology/physical_package_id"),
          least_of(folder / "topology/thread_siblings_list", cpu), cache_of(folder, cpu)};
    }
  }
  if (pretended) topology.gpu_nodes.assign(static_cast<size_t>(std::max(0, *pretended)), 0);
  if (pretended) return topology;
  for (const Gpu& gpu : only_visible(read_gpus(root), visible)) {
    // -1 on a machine with one node.
    const fs::path device = root + "/sys/bus/pci/devices/" + gpu.address;
    topology.gpu_nodes.push_back(read_number(device / "numa_node"));
  }
  return topology;
}

std::set<int> own_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::set<int> cpus;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < kCpusMax; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &mask)) cpus.insert(cpu);
  }
  return cpus;
}

}  // namespace cpprun
