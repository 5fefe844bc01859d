// A worker without LibTorch: every rank prints its ranks, and all meet at the launcher's store.
#include <cstdio>

#include "cpprun/worker.hpp"

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args) {
    const auto& environment = cpprun::worker::environment();
    if (!environment.ok()) throw std::runtime_error(environment.error().text);
    const auto& env = environment.value();
    auto store = cpprun::worker::StoreClient::connect(env.store);
    if (!store.ok()) throw std::runtime_error(store.error().text);
    const auto met = store.value().barrier("all", env.world_size);
    if (!met.ok()) throw std::runtime_error(met.error().text);
    std::printf("rank %d of %d met all\n", env.rank, env.world_size);
    return 0;
  });
}
