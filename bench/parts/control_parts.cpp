// The control protocol: one message there and back, as bytes.
#include "bench/parts/parts.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"

namespace cpprun::bench {
namespace {

control::World some_world() {
  control::World world;
  world.round = RoundNumber(3);
  world.world_size = 8000;
  world.group_size = 1000;
  world.master_addr = "10.20.30.40";
  world.master_port = 29500;
  return world;
}

}  // namespace

BENCH_PART(control_world) {
  return [message = control::CoordinatorMessage(some_world())](size_t n) {
    while (n-- > 0) keep(control::decode_coordinator(control::encode(message)).ok());
  };
}

BENCH_PART(control_ping) {
  return [message = control::AgentMessage(control::Ping{})](size_t n) {
    while (n-- > 0) keep(control::decode_agent(control::encode(message)).ok());
  };
}

}  // namespace cpprun::bench
