// Arbitrary bytes from arbitrary sessions through parser and store.
//
// First byte of the input: dialect and how the rest is cut. No crash is allowed, no answer without
// a question, the parser's promises about sizes, and the same commands and answers however the
// bytes are cut.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "rendezvous/protocol/sniff.hpp"
#include "rendezvous/store/store.hpp"
#include "tests/support/encoded_replies.hpp"

namespace cpprun {
namespace {

using tcpstore::Command;
using tcpstore::Dialect;
using tcpstore::Parsed;

void require(bool condition) {
  if (!condition) std::abort();
}

// Commands of one stream go to four sessions in turn, so that they can end waits.
struct Run {
  Store store;
  EncodedReplies answers;
  size_t commands = 0;
  bool is_broken = false;

  void apply(const Command& command) {
    store.apply(SessionId(commands++ % 4), command, answers);
    if (answers.refused) store.session_closed(*answers.refused, answers);
    answers.refused.reset();
  }
};

// `step` bytes more each time; 0 = all at once.
void feed(Run& run, Dialect dialect, std::span<const uint8_t> bytes, size_t step) {
  tcpstore::Limits limits{64, 4096, 512, 16384};
  tcpstore::Parser parser(dialect, limits);
  size_t start = 0;
  size_t end = step == 0 ? bytes.size() : 0;
  size_t wanted = 0;
  for (;;) {
    // An exact copy of the received bytes, so that the sanitizer reports a read beyond them.
    std::vector<uint8_t> held(bytes.begin() + static_cast<ptrdiff_t>(start),
                              bytes.begin() + static_cast<ptrdiff_t>(end));
    Command command;
    Parsed parsed = parser.parse(held, command);
    if (parsed.kind == Parsed::Kind::Broken) {
      run.is_broken = true;
      return;
    }
    if (parsed.kind == Parsed::Kind::Whole) {
      require(parsed.size > 0 && parsed.size <= held.size() && parsed.size >= wanted);
      wanted = 0;
      run.apply(command);
      start += parsed.size;
      continue;
    }
    require(parsed.size > held.size() && parsed.size <= limits.command_bytes + 16 * 512);
    wanted = parsed.size;
    if (end == bytes.size()) return;
    end = std::min(bytes.size(), end + step);
  }
}

void compare(Dialect dialect, std::span<const uint8_t> bytes, size_t step) {
  Run whole;
  feed(whole, dialect, bytes, 0);
  Run pieces;
  feed(pieces, dialect, bytes, step);
  // With more bytes the parser may detect an invalid length sooner, but it never yields another
  // command.
  require(whole.is_broken == pieces.is_broken && whole.commands == pieces.commands);
  require(whole.answers.replies == pieces.answers.replies);
  require(whole.store.keys() == pieces.store.keys());
  for (uint64_t session = 0; session < 4; ++session) {
    whole.store.session_closed(SessionId(session), whole.answers);
  }
  require(whole.store.waits() == 0);
}

}  // namespace
}  // namespace cpprun

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using cpprun::Dialect;
  if (size < 2) return 0;
  std::span<const uint8_t> rest(data + 1, size - 1);
  (void)cpprun::sniff(rest);
  size_t step = static_cast<size_t>(data[0] >> 2) + 1;
  switch (data[0] & 3) {
    case 0: cpprun::compare(Dialect::Modern, rest, step); break;
    case 1: cpprun::compare(Dialect::Legacy21, rest, step); break;
    case 2: cpprun::compare(Dialect::Legacy20, rest, step); break;
    default: {
      // The choice between 2.0 and 2.1 depends on the first piece, so only the whole input is
      // tried.
      cpprun::Run run;
      cpprun::feed(run, Dialect::Legacy, rest, 0);
    }
  }
  return 0;
}
