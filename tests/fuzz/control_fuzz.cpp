// Arbitrary bytes as a stream of frames and as bodies of both directions. Nothing may crash, hang
// or grow; every accepted message must survive another encoding and decoding.
#include <cstdlib>

#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace {

using namespace cpprun;

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Decode>
void decode_both_ways(std::span<const uint8_t> body, Decode decode) {
  auto decoded = decode(body);
  if (!decoded) return;
  std::vector<uint8_t> bytes = control::encode(*decoded);
  auto again = decode(bytes);
  require(again.ok() && again->index() == decoded->index());
  require(control::encode(*again) == bytes);
}

void as_body(std::span<const uint8_t> body) {
  decode_both_ways(body, control::decode_agent);
  decode_both_ways(body, control::decode_coordinator);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const uint8_t> all(data, size);
  as_body(all);
  for (;;) {
    control::FrameView frame = control::next_frame(all);
    if (frame.state != control::FrameView::State::Whole) return 0;
    require(frame.consumed == frame.body.size() + 4 && frame.consumed <= all.size());
    as_body(frame.body);
    all = all.subspan(frame.consumed);
  }
}
