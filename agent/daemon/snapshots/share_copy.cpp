#include "agent/daemon/snapshots/share_copy.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "agent/process/clock.hpp"
#include "rendezvous/protocol/transfer/snapshot_wire.hpp"

namespace cpprun {
namespace {

using share_wire::Shelf;
using snapshot_wire::Answer;

constexpr Duration kRetry = std::chrono::milliseconds(100);
constexpr int kTooSlow = 3;  // copies in a row that came to nothing, until that is worth a line

// One connection to the agent that has the shares.
class Line {
 public:
  static Result<Line> open(const ShareSource& source, std::shared_ptr<const Stopper> stopper) {
    const bool is_port = source.peer.port > 0 && source.peer.port <= UINT16_MAX;
    if (!is_port) return Error{ErrorKind::Protocol, "its port is none"};
    Result<PeerSocket> socket =
        PeerSocket::connect(source.peer.address, static_cast<uint16_t>(source.peer.port),
                            source.stalls, std::move(stopper));
    if (!socket) return socket.error();
    return Line(source, std::move(*socket));
  }

  Result<std::vector<ShareName>> names(Shelf shelf) {
    const Result<uint64_t> bytes = ask({source_->secret, shelf, {}}, limits::kShareListBytes);
    if (!bytes) return bytes.error();
    std::string text(*bytes, '\0');
    Status got = receive(std::as_writable_bytes(std::span(text.data(), text.size())));
    if (!got) return got.error();
    return share_wire::decode_shares(text);
  }

  // Fills the room. Error (Refused): the share is gone, as the next save was quicker.
  Status get(Shelf shelf, const ShareName& name, ShareRoom& room) {
    const Result<uint64_t> bytes = ask({source_->secret, shelf, name}, name.bytes);
    if (!bytes) return bytes.error();
    if (*bytes != name.bytes) return Error{ErrorKind::Protocol, "a share has another size"};
    Status got = receive(room.bytes());
    return got ? room.check() : got;
  }

 private:
  Line(const ShareSource& source, PeerSocket socket)
      : source_(&source), socket_(std::move(socket)) {}

  // How many bytes follow. Error (System): ask later; (Refused): it is not to be had.
  Result<uint64_t> ask(const share_wire::Request& request, uint64_t most) {
    if (Status sent = socket_.send(share_wire::encode(request), source_->stalls); !sent) {
      return sent.error();
    }
    Result<std::string> said = socket_.receive_line(source_->stalls);
    if (!said) return said.error();
    Result<Answer> answer = snapshot_wire::decode_answer(*said);
    if (!answer) return answer.error();
    switch (answer->kind) {
      case Answer::Kind::Busy:
      case Answer::Kind::Secret:
        return Error{ErrorKind::System, answer->why};
      case Answer::Kind::No:
        return Error{ErrorKind::Refused, answer->why};
      case Answer::Kind::Bytes:
        break;
    }
    if (answer->bytes > most) return Error{ErrorKind::Protocol, "more came than may come"};
    return answer->bytes;
  }

  // Who sends a byte now and then would hold the job up for ever.
  Status receive(std::span<std::byte> into) {
    const auto seconds = static_cast<int64_t>(into.size() / limits::kShareBytesPerSecond);
    const Instant until = boot_now() + source_->stalls + std::chrono::seconds(seconds);
    while (!into.empty()) {
      const Result<size_t> size = socket_.receive(into, source_->stalls);
      if (!size) return size.error();
      into = into.subspan(*size);
      if (boot_now() > until) return Error{ErrorKind::System, "it comes too slowly"};
    }
    return {};
  }

  const ShareSource* source_;
  PeerSocket socket_;
};

Result<std::vector<ShareRoom>> rooms_for(const std::vector<ShareName>& shares, Arenas& arenas) {
  std::vector<ShareRoom> rooms;
  for (const ShareName& share : shares) {
    Result<ShareRoom> room = ShareRoom::make(arenas, share);
    if (!room) return room.error();
    rooms.push_back(std::move(*room));
  }
  return rooms;
}

// All of a save, or none of it.
Status bring(Line& line, Shelf shelf, const std::vector<ShareName>& theirs,
             std::vector<ShareRoom>& rooms) {
  for (size_t i = 0; i < rooms.size(); ++i) {
    if (Status got = line.get(shelf, theirs[i], rooms[i]); !got) return got;
  }
  for (ShareRoom& room : rooms) room.complete();
  return {};
}

size_t arenas_of(const std::vector<ShareName>& shares) {
  std::set<int> indexes;
  for (const ShareName& share : shares) indexes.insert(share.index);
  return indexes.size();
}

// The same shares as they are named where they lie.
std::vector<ShareName> as_named_in(const std::vector<ShareName>& all,
                                   const std::vector<ShareName>& wanted) {
  std::vector<ShareName> named;
  for (const ShareName& want : wanted) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const ShareName& each) {
      return each.number == want.number && each.label == want.label;
    });
    if (found != all.end()) named.push_back(*found);
  }
  return named;
}

}  // namespace

CopyCount keep_copies(const ShareSource& source, Arenas& copies,
                      const std::shared_ptr<const Stopper>& stopper, const CopyEvents& events) {
  CopyCount count;
  std::optional<Line> line;
  std::vector<ShareName> last;
  int left_out_in_a_row = 0;
  while (!stopper->wait(limits::kShareLook)) {
    if (!line) {
      Result<Line> opened = Line::open(source, stopper);
      if (!opened) continue;
      line.emplace(std::move(*opened));
    }
    const Result<std::vector<ShareName>> theirs = line->names(Shelf::Own);
    if (!theirs) {
      line.reset();
      continue;
    }
    const std::vector<ShareName> wanted = to_copy(*theirs, shares_in(copies));
    if (wanted.empty()) continue;
    copies.set_workers(arenas_of(*theirs));
    Result<std::vector<ShareRoom>> rooms = rooms_for(wanted, copies);
    if (!rooms) {
      events.on_trouble(rooms.error().text);
      continue;
    }
    count.left_out += left_out(last, wanted);
    last = wanted;
    if (bring(*line, Shelf::Own, wanted, *rooms)) {
      ++count.copied;
      events.on_copied(wanted.front().label.step);
      left_out_in_a_row = 0;
      continue;
    }
    line.reset();  // what stands in it is of no use now
    ++count.left_out;
    if (++left_out_in_a_row == kTooSlow) {
      events.on_trouble(
          "saves follow each other more quickly than they are copied; save less often");
    }
  }
  return count;
}

TakenBack take_back(const ShareSource& source, const OwnRanks& ranks, Arenas& own,
                    const std::shared_ptr<const Stopper>& stopper) {
  if (has_own(shares_in(own), ranks)) return {};
  const Instant until = boot_now() + limits::kSharesSought;
  Error last{ErrorKind::System, "it was stopped"};
  do {
    Result<Line> line = Line::open(source, stopper);
    if (!line) {
      last = line.error();
      continue;
    }
    const Result<std::vector<ShareName>> theirs = line->names(Shelf::Copies);
    if (!theirs) {
      last = theirs.error();
      if (last.kind == ErrorKind::Refused || last.kind == ErrorKind::Protocol) break;
      continue;
    }
    const std::vector<ShareName> wanted = to_take_back(*theirs, ranks);
    if (wanted.empty()) return {};
    Result<std::vector<ShareRoom>> rooms = rooms_for(wanted, own);
    if (!rooms) return {rooms.error()};
    const Status brought = bring(*line, Shelf::Copies, as_named_in(*theirs, wanted), *rooms);
    if (!brought) return {brought};
    return {{}, wanted.front().label.step};
  } while (boot_now() < until && !stopper->wait(kRetry));
  return {last};
}

}  // namespace cpprun
