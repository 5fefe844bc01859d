// DoctorRendezvous: the meeting point of the doctors of several nodes. A TCPStore at the endpoint:
// the node that has its address serves it, unless a store is served there already.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun::ctl {

class DoctorRendezvous {
 public:
  // Errors: no store answers there within `limit`.
  static Result<std::unique_ptr<DoctorRendezvous>> join(const Endpoint& endpoint, int64_t count,
                                                        Duration limit);
  ~DoctorRendezvous();

  int64_t number() const;  // of this node, in the order of arrival
  // Our own address on the route to the endpoint; "" if unknown.
  std::string own_address() const;

  Status publish(const std::string& key, const std::string& text);
  // Nothing if no node publishes it within `limit`.
  std::optional<std::string> await(const std::string& key, Duration limit);

 private:
  struct Impl;
  explicit DoctorRendezvous(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun::ctl
