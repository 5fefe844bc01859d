// DoctorRendezvous: where the doctors of several nodes meet. A TCPStore at the endpoint: the node
// that has its address serves it, unless somebody serves one there already.
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
  // Errors: nobody serves there within `limit`.
  static Result<std::unique_ptr<DoctorRendezvous>> join(const Endpoint& endpoint, int64_t count,
                                                        Duration limit);
  ~DoctorRendezvous();

  int64_t number() const;  // of this node, in the order of arrival
  // Our own address on the way to the endpoint; "" if it can't be told.
  std::string own_address() const;

  Status publish(const std::string& key, const std::string& text);
  // Nothing: nobody has said it within `limit`.
  std::optional<std::string> await(const std::string& key, Duration limit);

 private:
  struct Impl;
  explicit DoctorRendezvous(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun::ctl
