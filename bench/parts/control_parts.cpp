// The control protocol: encoding and decoding of one message.
#include "bench/parts/parts.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"

namespace cpprun::bench {
namespace {

control::RankAssignment some_assignment() {
  control::RankAssignment assignment;
  assignment.round = RoundNumber(3);
  assignment.world_size = 8000;
  assignment.group_size = 1000;
  assignment.master_addr = "10.20.30.40";
  assignment.master_port = 29500;
  return assignment;
}

}  // namespace

BENCH_PART(control_assignment) {
  return [message = control::CoordinatorMessage(some_assignment())](size_t n) {
    while (n-- > 0) keep(control::decode_coordinator(control::encode(message)).ok());
  };
}

BENCH_PART(control_ping) {
  return [message = control::AgentMessage(control::Ping{})](size_t n) {
    while (n-- > 0) keep(control::decode_agent(control::encode(message)).ok());
  };
}

}  // namespace cpprun::bench
