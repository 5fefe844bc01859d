// Arbitrary bytes as a message of the worker channel: rejected, or the same after writing and
// reading it again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "rendezvous/protocol/worker/worker_channel.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cpprun::channel;
  const auto message = decode({data, size});
  if (!message) return 0;
  const std::string wire = encode(*message);
  const auto again = decode({reinterpret_cast<const uint8_t*>(wire.data()), wire.size()});
  if (!again || encode(*again) != wire) std::abort();
  (void)request_id_of(*again);
  return 0;
}
