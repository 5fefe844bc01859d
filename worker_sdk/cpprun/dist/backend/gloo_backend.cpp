#include "cpprun/dist/backend/gloo_backend.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace cpprun::dist {
namespace {

using Gloo = c10d::ProcessGroupGloo;

std::shared_ptr<gloo::transport::Device> make_device(const GlooEndpoint& endpoint) {
  if (!endpoint.interface.empty()) return Gloo::createDeviceForInterface(endpoint.interface);
  if (!endpoint.address.empty()) return Gloo::createDeviceForHostname(endpoint.address);
  return Gloo::createDefaultDevice();
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size, std::chrono::milliseconds timeout,
                                            const GlooEndpoint& endpoint) {
  auto options = Gloo::Options::create(timeout);
  options->devices.push_back(make_device(endpoint));
  options->threads = 2;  // c10d's default for one device
  return c10::make_intrusive<Gloo>(store, rank, size, std::move(options));
}

}  // namespace cpprun::dist
