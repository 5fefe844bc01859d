// sim_run: simulates random jobs, by seed.
//
//   sim_run --seeds 1:1000          # these small ones; every 20th twice
//   sim_run --large --seeds 1:3     # 10,000 nodes each; with --nodes N so many
//   sim_run --etcd --seeds 1:500    # small ones whose arbiter is etcd
//   sim_run --seed 42               # one, with its trace
//   sim_run --kept tests/sim/seeds.txt
//
// Exit code 0 if all properties held, 1 if not; each seed that failed is printed with the command
// that repeats it.
#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/support/sim/store_simulation.hpp"
#include "tests/support/sim/swarm/swarm.hpp"

namespace cpprun::sim {
namespace {

constexpr uint64_t kTwiceEach = 20;  // how often a seed is run a second time

struct Request {
  uint64_t first = 1;
  uint64_t last = 0;
  Size size = Size::Small;
  int64_t large_nodes = kLargeNodes;
  bool is_traced = false;
  bool stops_at_first = false;
  std::string kept;  // a file of sizes and seeds, instead of the range
};

struct Sum {
  uint64_t seeds = 0;
  uint64_t failed = 0;
  uint64_t events = 0;
  int64_t rounds = 0;
  int64_t successes = 0;
  int64_t waits = 0;  // at the store
};

bool parse_number(std::string_view text, uint64_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse(int count, char** words, Request& request) {
  for (int i = 1; i < count; ++i) {
    std::string_view word = words[i];
    if (word == "--large") {
      request.size = Size::Large;
    } else if (word == "--nodes" && i + 1 < count) {
      uint64_t nodes = 0;
      if (!parse_number(words[++i], nodes) || nodes < 1 || nodes > kLargeNodes) return false;
      request.large_nodes = static_cast<int64_t>(nodes);
    } else if (word == "--etcd") {
      request.size = Size::Elected;
    } else if (word == "--first") {
      request.stops_at_first = true;
    } else if (word == "--kept" && i + 1 < count) {
      request.kept = words[++i];
    } else if (word == "--seed" && i + 1 < count) {
      if (!parse_number(words[++i], request.first)) return false;
      request.last = request.first;
      request.is_traced = true;
    } else if (word == "--seeds" && i + 1 < count) {
      std::string_view range = words[++i];
      size_t colon = range.find(':');
      if (colon == std::string_view::npos) return false;
      if (!parse_number(range.substr(0, colon), request.first)) return false;
      if (!parse_number(range.substr(colon + 1), request.last)) return false;
    } else {
      return false;
    }
  }
  return !request.kept.empty() || request.last >= request.first;
}

void print_line(const std::string& line) { std::printf("%s\n", line.c_str()); }

std::string options_of(Size size, const SwarmPlan& plan) {
  if (size == Size::Large) return " --large --nodes " + std::to_string(plan.nodes);
  return size == Size::Elected ? " --etcd" : "";
}

void print_failure(uint64_t seed, Size size, const SwarmPlan& plan, const SwarmResult& result) {
  std::printf("FAILED sim_run%s --seed %llu\n%s\n", options_of(size, plan).c_str(),
              static_cast<unsigned long long>(seed), plan.text().c_str());
  for (const std::string& what : result.broken) std::printf("  %s\n", what.c_str());
  std::fflush(stdout);
}

void judge_store(uint64_t seed, SwarmResult& result, Sum& sum) {
  StoreResult store = run_store_simulation(seed);
  result.broken.insert(result.broken.end(), store.broken.begin(), store.broken.end());
  if (seed % kTwiceEach == 0 && run_store_simulation(seed).hash != store.hash) {
    result.broken.emplace_back("the same seed gave two different runs of the store");
  }
  sum.waits += store.waits;
}

void run_seed(uint64_t seed, const Request& request, Sum& sum) {
  const Size size = request.size;
  const bool is_traced = request.is_traced;
  SwarmPlan plan = draw_plan(seed, size, request.large_nodes);
  if (is_traced) print_line(plan.text());
  SwarmResult result = run_swarm(plan, is_traced ? print_line : nullptr);
  if (size != Size::Large && seed % kTwiceEach == 0 && run_swarm(plan).hash != result.hash) {
    result.broken.emplace_back("the same seed gave two different runs");
  }
  if (size == Size::Small) judge_store(seed, result, sum);
  ++sum.seeds;
  sum.events += result.events;
  sum.rounds += result.rounds;
  sum.successes += result.successes;
  if (result.broken.empty()) return;
  ++sum.failed;
  print_failure(seed, size, plan, result);
}

// Lines of `size seed comment`.
bool run_kept(const std::string& path, Sum& sum) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string size;
    uint64_t seed = 0;
    if (line.empty() || line.front() == '#') continue;
    if (!(words >> size >> seed)) return false;
    const bool is_known = size == "small" || size == "large" || size == "etcd";
    if (!is_known) return false;
    Request kept;
    if (size != "small") kept.size = size == "large" ? Size::Large : Size::Elected;
    run_seed(seed, kept, sum);
  }
  return sum.seeds > 0;
}

int run(const Request& request) {
  Sum sum;
  if (!request.kept.empty() && !run_kept(request.kept, sum)) {
    std::fprintf(stderr, "sim_run: %s holds no list of seeds\n", request.kept.c_str());
    return 2;
  }
  for (uint64_t seed = request.first; seed <= request.last; ++seed) {
    run_seed(seed, request, sum);
    if (request.stops_at_first && sum.failed > 0) break;
  }
  std::printf(
      "%llu seeds, %llu failed; %lld rounds, %lld nodes ended well, %llu events, %lld waits\n",
      static_cast<unsigned long long>(sum.seeds), static_cast<unsigned long long>(sum.failed),
      static_cast<long long>(sum.rounds), static_cast<long long>(sum.successes),
      static_cast<unsigned long long>(sum.events), static_cast<long long>(sum.waits));
  return sum.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace cpprun::sim

int main(int count, char** words) {
  cpprun::sim::Request request;
  if (!cpprun::sim::parse(count, words, request)) {
    std::fputs(
        "usage: sim_run [--large [--nodes N] | --etcd] [--first] --seed N | --seeds FIRST:LAST | "
        "--kept FILE\n",
        stderr);
    return 2;
  }
  return cpprun::sim::run(request);
}
