// How the doctors of two nodes look at each other: one answers on a port of its own, the other
// connects, sends echoes there and back, and then as much as gets through.
//
//   look   := "cpprun-doctor-1 " secret " echo\n" then per echo 8 bytes there, 16 back: the
//             answerer's wall clock when it had them and when it answered (ns, little-endian)
//           | "cpprun-doctor-1 " secret " flood\n" then bytes until the end of the sending side;
//             8 bytes back: how many came
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "launcher/doctor/node_facts.hpp"

namespace cpprun::ctl {

// Answers whoever shows the secret, one at a time, on a thread of its own.
class PairResponder {
 public:
  // On all interfaces; port 0 takes a free one.
  static Result<std::unique_ptr<PairResponder>> start(uint16_t port, std::string secret);
  ~PairResponder();  // waits for whoever is being answered, at most limits::kDoctorPairTimeout
  uint16_t port() const;

 private:
  struct Impl;
  explicit PairResponder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Looks at the node. Blocks, at most limits::kDoctorPairTimeout.
doctor::PairFacts look_at(const doctor::NodeCard& node);

}  // namespace cpprun::ctl
