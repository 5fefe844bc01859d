// Joins a process group in one of four ways, sums up the ranks, prints Done.
//
//   cpprun --nproc_per_node=4 ./ex_init                          # env://, the usual way
//   cpprun --nproc_per_node=4 ./ex_init --init-method file:///tmp/meeting-point
//   ./ex_init --init-method tcp://127.0.0.1:23456 --world-size 2 --rank 0 &    # no launcher
//   ./ex_init --init-method tcp://127.0.0.1:23456 --world-size 2 --rank 1
//   ./ex_init --method manual --port 12355 --rank 0 --world-size 1   # env://, set by hand
//
// The other options cause failures on purpose: a rank that is killed, a group that is not
// destroyed.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/worker/environment.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace dist = cpprun::dist;

namespace {

struct Settings {
  std::string method = "url", init_method = "env://";
  int port = 12355, rank = -1, world_size = -1;
  int crash_rank = -1, crash_attempt = 0;
  double timeout = 30;
  bool is_left_undestroyed = false;
};

Settings parse(cpprun::Args args) {
  Settings s;
  examples::Options("Joins a process group, sums up the ranks, prints Done.")
      .add("--method", s.method, "url, or manual: MASTER_ADDR and MASTER_PORT set by the program")
      .add("--init-method", s.init_method, "env://, tcp://HOST:PORT or file:///PATH")
      .add("--port", s.port, "port for --method manual")
      .add("--rank", s.rank, "-1: from the launcher")
      .add("--world-size", s.world_size, "-1: from the launcher")
      .add("--timeout", s.timeout, "seconds to wait for the others")
      .add("--crash-rank", s.crash_rank, "this rank kills itself after joining")
      .add("--crash-attempt", s.crash_attempt, "... at this restart count")
      .add("--no-destroy", s.is_left_undestroyed, "exit without destroying the group")
      .parse(args);
  return s;
}

const cpprun::worker::Environment& worker_environment() {
  const auto& environment = cpprun::worker::environment();
  if (!environment) throw std::runtime_error(environment.error().text);
  return *environment;
}

// Values left at -1 come from the launcher; others take precedence over it.
dist::InitOptions init_options(const Settings& s) {
  dist::InitOptions options{.backend = "gloo"};
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(s.timeout * 1000));
  options.rank = s.rank;
  options.world_size = s.world_size;
  if (s.method != "manual") {
    options.init_method = s.init_method;
    return options;
  }
  // Without a launcher: all ranks know the same address, and rank 0 serves the store there.
  setenv("MASTER_ADDR", "localhost", 1);
  setenv("MASTER_PORT", std::to_string(s.port).c_str(), 1);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    const Settings settings = parse(args);
    auto group = dist::init_process_group(init_options(settings));

    const int rank = dist::get_rank(), world = dist::get_world_size();
    if (rank == settings.crash_rank && worker_environment().restart_count == settings.crash_attempt)
      std::raise(SIGKILL);

    auto total = torch::tensor({rank});
    dist::all_reduce(total);
    if (total.item<int>() != world * (world - 1) / 2)
      throw std::runtime_error("the ranks add up to " + examples::list(total));

    // The guard destroys the group at the end of the scope; leak it for --no-destroy.
    if (settings.is_left_undestroyed) new dist::ProcessGroupGuard(std::move(group));
    examples::print_line("Done");
  });
}
