// Arbitrary bytes as the pickle of a checkpoint. Nothing may crash, hang or grow; every accepted
// value must be the same after writing and reading it again.
#include <cstdlib>

#include "snapshot_files/pickle/pickle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cpprun::pickle;
  const ReadLimits limits{.nodes = 100'000, .text_bytes = 1 << 20};
  const auto value = read({reinterpret_cast<const char*>(data), size}, limits);
  if (!value) return 0;
  const std::string written = write(*value);
  const auto again = read(written);
  // Compares the bytes of a second pickle and not the values, since NaN is unequal to itself.
  if (!again || write(*again) != written) std::abort();
  return 0;
}
