#include "agent/daemon/reserved_ports.hpp"

#include <utility>

namespace cpprun {

Status ReservedPorts::reserve_fixed_master() {
  if (!config_.master_port || !has_master()) return {};
  Result<PortReservation> fixed = PortReservation::make(config_.master_port);
  if (!fixed) return fixed.error();
  master_.emplace(std::move(*fixed));
  return {};
}

Result<int64_t> ReservedPorts::reserve_master() {
  if (has_master() && !config_.master_port) {
    master_.reset();
    Result<PortReservation> fresh = PortReservation::make(std::nullopt);
    if (!fresh) return fresh.error();
    master_.emplace(std::move(*fresh));
  }
  return int64_t{master_ ? master_->port() : 0};
}

Result<uint16_t> ReservedPorts::reserve_control() {
  Result<PortReservation> port = PortReservation::make(std::nullopt);
  if (!port) return port.error();
  control_.emplace(std::move(*port));
  return control_->port();
}

}  // namespace cpprun
