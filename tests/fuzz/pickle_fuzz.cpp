// Arbitrary bytes as the pickle of a checkpoint and of an object. Nothing may crash, hang or grow;
// every accepted value must be the same after writing and reading it again.
#include <cstdlib>

#include "snapshot_files/pickle/pickle.hpp"

namespace {

using namespace cpprun::pickle;

// Few values, since each reference to a storage is written with the storage's bytes.
void check_object(std::string_view bytes) {
  const ReadLimits limits{.nodes = 1000, .text_bytes = 1 << 20};
  const auto object = read_object(bytes, limits);
  if (!object) return;
  const std::string written = write_object(*object);
  const auto again = read_object(written);
  if (!again) std::abort();
  // Writing numbers the storages anew, in the order of their tensors.
  const std::string second = write_object(*again);
  const auto third = read_object(second);
  if (!third || write_object(*third) != second) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ReadLimits limits{.nodes = 100'000, .text_bytes = 1 << 20};
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_object(bytes);
  const auto value = read(bytes, limits);
  if (!value) return 0;
  const std::string written = write(*value);
  const auto again = read(written);
  // Compares the bytes of a second pickle and not the values, since NaN is unequal to itself.
  if (!again || write(*again) != written) std::abort();
  return 0;
}
