// The half of WorkerChannel that knows what messages mean.
#include <algorithm>
#include <utility>

#include "agent/process/send_descriptor.hpp"
#include "agent/process/worker_channel.hpp"
#include "common/limits/rendezvous.hpp"

namespace cpprun {
namespace {

// The version that brought this message: 1 had four, 2 ten, 3 thirteen.
uint32_t version_of(const channel::Message& message) {
  return message.index() < 4 ? 1 : message.index() < 10 ? 2 : message.index() < 13 ? 3 : 4;
}

}  // namespace

// False: the peer must not say this, or does not take its answer; its connection ends.
bool WorkerChannel::take(Peer& peer, const channel::Message& message) {
  if (const auto* hello = std::get_if<channel::Hello>(&message)) return welcome(peer, *hello);
  if (peer.version < version_of(message)) return false;
  return std::visit([&](const auto& m) { return on(peer, m); }, message);
}

bool WorkerChannel::welcome(Peer& peer, const channel::Hello& hello) {
  if (peer.version != 0 || hello.version == 0 || hello.version > channel::kVersion) return false;
  Worker& worker = workers_.at(peer.local_rank);
  if (!worker.page) {
    Result<SharedPage> page = SharedPage::make();
    if (!page) return false;
    worker.page.emplace(std::move(*page));
    worker.page->page().wants_stop.store(is_stopping_ ? 1 : 0, std::memory_order_release);
    worker.page->page().snapshot_newest.store(newest_snapshot_, std::memory_order_release);
    tell(WorkerWord::Connected, peer.local_rank);
  }
  peer.version = hello.version;
  return answer(peer, channel::Page{sizeof(WorkerPage)}, worker.page->descriptor());
}

bool WorkerChannel::on(Peer& peer, const channel::Ready&) {
  Worker& worker = workers_.at(peer.local_rank);
  if (!std::exchange(worker.is_ready, true)) events_.on_ready(peer.local_rank);
  return true;
}

void WorkerChannel::tell(WorkerWord word, int local_rank) {
  if (events_.on_word) events_.on_word(local_rank, word);
}

bool WorkerChannel::on(Peer& peer, const channel::FirstStep&) {
  Worker& worker = workers_.at(peer.local_rank);
  if (!std::exchange(worker.has_stepped, true)) tell(WorkerWord::Stepped, peer.local_rank);
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::Report& report) {
  workers_.at(peer.local_rank).report = report.text;
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::ArenaWanted& wanted) {
  channel::Arena arena{wanted.question, 0, {}};
  const Result<Arenas::Piece> piece = arenas_->want(peer.local_rank, wanted.bytes);
  if (piece) {
    arena.bytes = piece->bytes;
  } else {
    arena.refusal = piece.error().text;
  }
  return answer(peer, arena, piece ? piece->descriptor : -1);
}

bool WorkerChannel::on(Peer& peer, const channel::ArenaOf& wanted) {
  channel::Arena arena{wanted.question, 0, {}};
  const Result<Arenas::View> view = wanted.local_rank <= limits::kWorkersPerNode
                                        ? arenas_->view(static_cast<int>(wanted.local_rank))
                                        : Error{ErrorKind::Refused, "there is no such local rank"};
  if (view) {
    arena.bytes = view->bytes;
  } else {
    arena.refusal = view.error().text;
  }
  return answer(peer, arena, view ? view->descriptor.get() : -1);
}

bool WorkerChannel::on(Peer& peer, const channel::MayCommit& question) {
  const std::string why = events_.why_not_commit ? events_.why_not_commit() : std::string();
  return answer(peer, channel::Leave{question.question, why.empty(), why});
}

bool WorkerChannel::on(Peer& peer, const channel::Snapshot& snapshot) {
  const bool is_sensible = snapshot.step >= 0 && snapshot.path.starts_with('/') &&
                           snapshot.path.find('\0') == std::string::npos;
  if (!is_sensible) return false;
  newest_snapshot_ = std::max(newest_snapshot_, snapshot.step);
  for (auto& [rank, worker] : workers_) {
    if (!worker.page) continue;
    worker.page->page().snapshot_newest.store(newest_snapshot_, std::memory_order_release);
  }
  if (events_.on_snapshot) events_.on_snapshot(peer.local_rank, snapshot.step, snapshot.path);
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::Resumed& resumed) {
  if (resumed.step < -1) return false;
  tell(WorkerWord::Resumed, peer.local_rank);
  if (resumed.fell_back && events_.on_fell_back) {
    events_.on_fell_back(peer.local_rank, resumed.step);
  }
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::Strike& question) {
  if (!events_.on_strike) return answer(peer, channel::Leave{question.question, false, "no plan"});
  const auto reply = [this, id = peer.id, number = question.question,
                      alive = std::weak_ptr<int>(life_)](bool is_given) {
    if (alive.expired()) return;
    const auto asker = peers_.find(id);  // gone meanwhile: nobody waits
    if (asker != peers_.end()) answer(asker->second, channel::Leave{number, is_given, {}});
  };
  events_.on_strike(peer.local_rank, question, reply);
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::Began& began) {
  if (events_.on_began) events_.on_began(peer.local_rank, began);
  return true;
}

// Unread answers hold descriptors, so whoever lets them pile up is no peer for long.
bool WorkerChannel::answer(Peer& peer, const channel::Message& message, int descriptor) {
  return send_datagram(peer.socket.native_handle(), channel::encode(message), descriptor);
}

}  // namespace cpprun
