// Arbitrary bytes as every message between agents that transfer snapshots and shards or check their
// link: rejected, or the same after writing and reading it again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rendezvous/protocol/transfer/link_protocol.hpp"
#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"

namespace {

namespace links = cpprun::link_protocol;
namespace replicas = cpprun::replica_protocol;
namespace snapshots = cpprun::snapshot_protocol;
using links::encode;
using replicas::encode;
using snapshots::encode;

// Receivers read up to the newline and decode the text before it.
std::string_view line_of(std::string_view text) { return text.substr(0, text.find('\n')); }

template <class Decode>
void check(std::string_view text, Decode decode) {
  const auto message = decode(text);
  if (!message) return;
  const std::string wire = encode(*message);
  if (wire.size() >= snapshots::kLineBytes) return;  // it may have been cut
  const auto again = decode(wire);
  if (!again || encode(*again) != wire) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(text, [](std::string_view bytes) { return snapshots::decode_request(line_of(bytes)); });
  check(text, [](std::string_view bytes) { return snapshots::decode_answer(line_of(bytes)); });
  check(text, [](std::string_view bytes) { return links::decode_request(line_of(bytes)); });
  check(text, [](std::string_view bytes) { return replicas::decode_request(line_of(bytes)); });
  check(text, [](std::string_view bytes) { return replicas::decode_shards(bytes); });
  return 0;
}
