// DoctorRendezvous: the meeting point of the doctors of several nodes. A TCPStore at the endpoint:
// the node that has its address serves it, unless a store is served there already.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/client/store/store_client.hpp"

namespace cpprun::ctl {

class DoctorRendezvous {
 public:
  // Errors: no store answers there within `limit`.
  static Result<std::unique_ptr<DoctorRendezvous>> join(const Endpoint& endpoint, int64_t count,
                                                        Duration limit);
  ~DoctorRendezvous();

  int64_t number() const { return number_; }         // of this node, in the order of arrival
  bool is_host() const { return host_ != nullptr; }  // this process serves the store
  // Our own address on the route to the endpoint; "" if unknown.
  const std::string& own_address() const { return own_address_; }

  Status publish(const std::string& key, const std::string& text);
  // Nothing if no node publishes it within `limit`.
  std::optional<std::string> await(const std::string& key, Duration limit);

 private:
  class StoreHost;
  DoctorRendezvous(std::unique_ptr<StoreHost> host, worker::StoreClient store, int64_t number,
                   std::string prefix, std::string own_address);

  std::unique_ptr<StoreHost> host_;
  worker::StoreClient store_;
  int64_t number_;
  std::string prefix_;  // of keys: a store that another program serves may hold earlier runs
  std::string own_address_;
};

}  // namespace cpprun::ctl
