// Arbitrary bytes as a manifest.json: rejected, or the same after writing and reading it again.
#include <cstdlib>
#include <string_view>

#include "snapshot_files/folders/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cpprun::snapshot_files;
  const auto manifest = decode_manifest({reinterpret_cast<const char*>(data), size});
  if (!manifest) return 0;
  const auto again = decode_manifest(encode(*manifest));
  if (!again || *again != *manifest) std::abort();
  return 0;
}
