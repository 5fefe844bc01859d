// The measurement between the doctors of two nodes: one serves on a port of its own; the other
// connects, measures round trips and clock offset with echoes, then the throughput.
//
//   request := "cpprun-doctor-1 " secret " echo\n", then per echo: 8 bytes from the client, 16 from
//              the server: its wall clock at receipt and at reply (ns, little-endian)
//            | "cpprun-doctor-1 " secret " flood\n", then bytes until the client shuts down
//            sending;
//              8 bytes from the server: how many it received
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "launcher/doctor/cross_node_checks.hpp"

namespace cpprun::ctl {

// Serves clients that present the secret, one at a time, on a thread of its own.
class PairResponder {
 public:
  // Listens on all interfaces; port 0 takes a free one.
  static Result<std::unique_ptr<PairResponder>> start(uint16_t port, std::string secret);
  ~PairResponder();  // waits for the current client, limits::kDoctorPairTimeout at most
  uint16_t port() const;

 private:
  PairResponder(int listener, std::string secret);
  void run() const;

  const UniqueFd listener_;
  const UniqueFd stop_;  // eventfd
  const std::string secret_;
  std::thread thread_;
};

// Measures the connection to the node. Blocks for limits::kDoctorPairTimeout at most.
doctor::PairFacts measure_pair(const doctor::NodeCard& node);

}  // namespace cpprun::ctl
