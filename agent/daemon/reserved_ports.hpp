// ReservedPorts: the TCP ports that this agent keeps free of other programs: MASTER_PORT of the
// next round, and the port from which this node would lead the job. Thread: the loop's.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/core/config.hpp"
#include "agent/process/spawn/port_reservation.hpp"
#include "common/result.hpp"

namespace cpprun {

class ReservedPorts {
 public:
  // `config` must outlive this object.
  explicit ReservedPorts(const RendezvousConfig& config) : config_(config) {}

  // Reserves a MASTER_PORT that the user has chosen, for all rounds. No effect if there is none.
  Status reserve_fixed_master();
  // MASTER_PORT of the next round: a new port, unless the user has chosen one. 0: worker 0 serves
  // no store, so that no port is reserved.
  Result<int64_t> reserve_master();
  // The port to lead the job from. Replaces an earlier one.
  Result<uint16_t> reserve_control();

 private:
  // Worker 0 serves MASTER_PORT.
  bool has_master() const { return config_.worker_store == WorkerStore::Rank0; }

  const RendezvousConfig& config_;
  std::optional<PortReservation> master_;
  std::optional<PortReservation> control_;
};

}  // namespace cpprun
