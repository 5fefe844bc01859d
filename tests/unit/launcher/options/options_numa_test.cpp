// --numa-binding: torch's four modes on a simulated machine, and that machine read from a simulated
// /sys.
#include <filesystem>
#include <fstream>

#include "launcher/options/numa.hpp"
#include "tests/support/temp_folder.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

using Cpus = std::vector<int>;

// Two sockets of two nodes with four cores of two threads each; CPU n and n + 16 share a core, two
// cores share a cache. GPUs 0 and 1 are near node 1, GPU 2 is near node 3.
Topology topology_of_two() {
  Topology made;
  for (int cpu = 0; cpu < 32; ++cpu) {
    const int core = cpu % 16;
    made.cpus[cpu] = {core / 4, core / 8, core, core - core % 2};
  }
  made.gpu_nodes = {1, 1, 3};
  return made;
}

Cpus near_gpu(const char* mode, int gpu, const Topology& topology = topology_of_two()) {
  const Result<Cpus> cpus = cpus_near(topology, mode, gpu);
  if (!cpus) ADD_FAILURE() << cpus.error().text;
  return cpus ? *cpus : Cpus{};
}

TEST(NumaBinding, ByNode) {
  EXPECT_EQ(near_gpu("node", 0), (Cpus{4, 5, 6, 7, 20, 21, 22, 23}));
  EXPECT_EQ(near_gpu("node", 1), near_gpu("node", 0));
  EXPECT_EQ(near_gpu("node", 2), (Cpus{12, 13, 14, 15, 28, 29, 30, 31}));
}

TEST(NumaBinding, BySocket) {
  EXPECT_EQ(near_gpu("socket", 0), (Cpus{0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}));
}

TEST(NumaBinding, ExclusivelyWithoutSharingACore) {
  EXPECT_EQ(near_gpu("exclusive", 0), (Cpus{4, 20, 5, 21}));
  EXPECT_EQ(near_gpu("exclusive", 1), (Cpus{6, 22, 7, 23}));
  EXPECT_EQ(near_gpu("exclusive", 2).size(), 8u);
}

TEST(NumaBinding, TheFirstRankGetsTheRemainingCore) {
  Topology topology = topology_of_two();
  for (int cpu : {7, 23}) topology.cpus.erase(cpu);
  EXPECT_EQ(near_gpu("exclusive", 0, topology), (Cpus{4, 20, 5, 21}));
  EXPECT_EQ(near_gpu("exclusive", 1, topology), (Cpus{6, 22}));
}

TEST(NumaBinding, ByCoreComplexLargestFirst) {
  Topology topology = topology_of_two();
  topology.cpus.erase(4);
  EXPECT_EQ(near_gpu("core-complex", 0, topology), (Cpus{6, 7, 22, 23}));
  EXPECT_EQ(near_gpu("core-complex", 1, topology), (Cpus{5, 20, 21}));
}

TEST(NumaBinding, ReportsImpossibleBindings) {
  EXPECT_TRUE(holds(cpus_near(topology_of_two(), "node", 3).error().text, "worker 3 has no GPU"));
  Topology narrow = topology_of_two();
  std::erase_if(narrow.cpus, [](const auto& cpu) { return cpu.second.core != 4; });
  EXPECT_TRUE(holds(cpus_near(narrow, "node", 2).error().text, "no CPU of NUMA node 3"));
  EXPECT_TRUE(holds(cpus_near(narrow, "exclusive", 0).error().text, "2 GPUs near"));
}

TEST(NumaBinding, FormatsRangesAsTheKernelDoes) {
  EXPECT_EQ(parse_ranges("0-2,4,6-7\n"), (std::set<int>{0, 1, 2, 4, 6, 7}));
  EXPECT_EQ(parse_ranges(""), std::set<int>{});
  EXPECT_EQ(parse_ranges("x,3,9-999999999"), std::set<int>{3});
}

class SysTree {
 public:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void cpu(int n, const std::string& siblings, int socket, const std::string& cache) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(n) + "/";
    write(folder + "topology/thread_siblings_list", siblings);
    write(folder + "topology/physical_package_id", std::to_string(socket));
    write(folder + "cache/index0/level", "1");
    write(folder + "cache/index0/type", "Data");
    write(folder + "cache/index0/shared_cpu_list", siblings);
    write(folder + "cache/index1/level", "3");
    write(folder + "cache/index1/type", "Unified");
    write(folder + "cache/index1/shared_cpu_list", cache);
  }
  void gpu(const std::string& address, const std::string& identity, const std::string& node) {
    write("proc/driver/nvidia/gpus/" + address + "/information",
          "Model: \t\t Some GPU\nGPU UUID: \t " + identity);
    write("sys/bus/pci/devices/" + address + "/numa_node", node);
  }
  std::string root() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

TEST(NumaTopology, IsReadFromSysAndProc) {
  SysTree tree;
  tree.write("sys/devices/system/node/node0/cpulist", "0-1");
  tree.write("sys/devices/system/node/node1/cpulist", "2-3");
  tree.cpu(0, "0-1", 0, "0-1");
  tree.cpu(1, "0-1", 0, "0-1");
  tree.cpu(2, "2", 1, "2-3");
  tree.cpu(3, "3", 1, "2-3");
  tree.gpu("0000:b1:00.0", "GPU-bbbb", "1");
  tree.gpu("0000:17:00.0", "GPU-aaaa", "-1");
  const auto read = [&](const std::optional<std::string>& visible) {
    return read_topology(tree.root(), {0, 1, 2}, visible, std::nullopt);
  };
  const Topology all = read(std::nullopt);
  ASSERT_EQ(all.cpus.size(), 3u) << "3 is not ours";
  EXPECT_EQ(all.cpus.at(1).core, 0);
  EXPECT_EQ(all.cpus.at(2).cache, 2);
  EXPECT_EQ(all.cpus.at(2).socket, 1);
  EXPECT_EQ(all.gpu_nodes, (Cpus{0, 1})) << "in the order of the bus";
  EXPECT_EQ(read("1,0").gpu_nodes, (Cpus{1, 0}));
  EXPECT_EQ(read("GPU-bb").gpu_nodes, (Cpus{1}));
  EXPECT_EQ(read("1,7,0").gpu_nodes, (Cpus{1})) << "the list ends where one does not exist";
  EXPECT_TRUE(read("").gpu_nodes.empty());
}

TEST(NumaTopology, OfThisMachine) {
  if (!std::filesystem::exists("/sys/devices/system/node/node0")) GTEST_SKIP() << "no NUMA in /sys";
  const Topology here = read_topology("", own_cpus(), std::nullopt, 1);
  EXPECT_EQ(here.cpus.size(), own_cpus().size());
  EXPECT_EQ(here.gpu_nodes, Cpus{0});
}

}  // namespace
}  // namespace cpprun::test
