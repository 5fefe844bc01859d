// Arbitrary bytes as a query or a reply of the admin protocol. A query that is accepted is the same
// after writing and reading it again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rendezvous/protocol/admin/admin_protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cpprun::admin;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)refusal_reason(text);
  const auto query = decode_query(text);
  if (!query) return 0;
  const auto again = decode_query(encode(*query));
  if (!again || again->verb != query->verb || again->parameters != query->parameters) std::abort();
  return 0;
}
