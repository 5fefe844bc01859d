#include "agent/daemon/snapshots/copies_room.hpp"

#include <sys/resource.h>

#include <utility>

#include "agent/daemon/way_back.hpp"
#include "common/endpoint.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

std::shared_ptr<Arenas> half_of_memory(size_t workers) {
  auto arenas = std::make_shared<Arenas>([] { return memory_for_arenas() / 2; });
  arenas->set_workers(workers);
  return arenas;
}

std::string name_of(const control::Peer& peer) {
  return to_string(Endpoint{peer.address, static_cast<uint16_t>(peer.port)});
}

OwnRanks ranks_of(const control::World& world, size_t workers) {
  return {static_cast<int>(world.base_rank), static_cast<int>(workers),
          static_cast<int>(world.world_size)};
}

}  // namespace

CopiesRoom::CopiesRoom(boost::asio::io_context& loop, size_t workers, Events events)
    : workers_(workers),
      shelves_{half_of_memory(workers), half_of_memory(workers)},
      events_(std::move(events)),
      way_(std::make_shared<WayBack>(loop)) {}

CopiesRoom::~CopiesRoom() {
  way_->close();
  drop_seek();
  if (keeping_) keeping_->stop();
}

void CopiesRoom::keep(const std::optional<control::Peer>& of, const std::string& secret) {
  if (keeping_) keeping_->stop();
  keeping_.reset();
  if (!of) return;
  keeping_ = std::make_shared<Stopper>();
  const ShareSource source{*of, secret};
  const Status ok =
      start_quiet_thread([this, source, copies = shelves_.copies, way = way_, stopper = keeping_] {
        ::setpriority(PRIO_PROCESS, 0, limits::kShareNice);  // of this thread alone
        CopyEvents events;
        events.on_copied = [&](int64_t step) {
          WayBack::post(way, [this, of = source.peer, step] { on_copied(of, step); });
        };
        events.on_trouble = [&](const std::string& why) {
          WayBack::post(way, [this, of = source.peer, why] { on_trouble(of, why); });
        };
        const CopyCount count = keep_copies(source, *copies, stopper, events);
        WayBack::post(way, [this, of = source.peer, count] { on_kept(of, count); });
      });
  if (!ok) on_trouble(*of, ok.error().text);
}

void CopiesRoom::seek(const control::Peer& at, const control::World& world) {
  drop_seek();
  seeking_ = std::make_shared<Stopper>();
  shelves_.own->set_workers(workers_);
  const ShareSource source{at, world.snapshot_secret};
  const auto over = [this, at, way = way_, stopper = seeking_](const TakenBack& back) {
    WayBack::post(way, [this, at, stopper, back] {
      if (stopper == seeking_) on_taken_back(at, back);
    });
  };
  const Status ok =
      start_quiet_thread([source, over, ranks = ranks_of(world, workers_), own = shelves_.own,
                          stopper = seeking_] { over(take_back(source, ranks, *own, stopper)); });
  if (!ok) over(TakenBack{ok});
}

void CopiesRoom::drop_seek() {
  if (seeking_) seeking_->stop();
  seeking_.reset();
}

void CopiesRoom::on_kept(const control::Peer& of, const CopyCount& count) {
  events_.on_note(true, "copied " + text::count(count.copied, "save") + " of " + name_of(of) +
                            " into memory; left out: " + std::to_string(count.left_out));
}

void CopiesRoom::on_copied(const control::Peer& of, int64_t step) {
  events_.on_note(
      false, "the memory of " + name_of(of) + " at step " + std::to_string(step) + " is copied");
}

// Once in a job: what is too slow today is so tomorrow.
void CopiesRoom::on_trouble(const control::Peer& of, const std::string& why) {
  if (std::exchange(is_trouble_said_, true)) return;
  events_.on_warning("the newest saves of " + name_of(of) +
                     " have no copies in memory here: " + why + "; this is said once");
}

void CopiesRoom::on_taken_back(const control::Peer& at, const TakenBack& back) {
  drop_seek();
  if (!back.status) {
    events_.on_warning("no copies of this node's memory could be had from " + name_of(at) + ": " +
                       back.status.error().text + "; it resumes from disk");
  } else if (back.step >= 0) {
    events_.on_note(true, "this node's memory of step " + std::to_string(back.step) +
                              " came from " + name_of(at));
  } else {
    events_.on_note(true, name_of(at) + " holds no copies of this node's memory");
  }
  events_.on_sought();
}

}  // namespace cpprun
