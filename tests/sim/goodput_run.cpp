// goodput_run: a day of a big job in virtual time, with failures at the rate that large clusters
// report; prints the share of time spent training.
//
//   goodput_run                              # 1,000 nodes, 24 hours
//   goodput_run --nodes 100 --hours 2 --node-fails-each-hours 20 --heartbeat 5
//
// Lease is five heartbeats. Exit code 1 if a property did not hold.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/support/sim/goodput.hpp"

int main(int count, char** words) {
  using namespace cpprun;
  sim::GoodputOptions options;
  double hours = 24;
  double each = 1011;  // 7.9 h for 1,024 GPUs, eight to a node
  double heartbeat = 1;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = words[i];
    const double value = std::atof(words[i + 1]);
    if (name == "--nodes") options.nodes = static_cast<int64_t>(value);
    if (name == "--seed") options.seed = static_cast<uint64_t>(value);
    if (name == "--hours") hours = value;
    if (name == "--node-fails-each-hours") each = value;
    if (name == "--heartbeat") heartbeat = value;
  }
  options.lasts = seconds(hours * 3600);
  options.node_fails_each = seconds(each * 3600);
  options.heartbeat = seconds(heartbeat);
  options.lease = options.heartbeat * 5;
  std::printf("%lld nodes and %lld spares for %g h, one node fails every %.2f h, lease %g s: ",
              static_cast<long long>(options.nodes), static_cast<long long>(options.spares), hours,
              each / static_cast<double>(options.nodes), to_seconds(options.lease));
  std::fflush(stdout);
  sim::GoodputResult result = sim::run_goodput(options);
  std::fputs(result.text().c_str(), stdout);
  for (const std::string& what : result.broken) std::printf("  BROKEN: %s\n", what.c_str());
  return result.broken.empty() ? 0 : 1;
}
