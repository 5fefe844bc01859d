#include "agent/process/channel/worker_channel.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "agent/process/channel/arena_checksums.hpp"
#include "common/limits/channel.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/sockets.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

using boost::asio::posix::stream_descriptor;

constexpr int kBacklog = 256;  // beyond it workers wait in connect()

// The worker may write anything.
Duration time_of(const std::atomic<int64_t>& nanoseconds) {
  return std::clamp(Duration(nanoseconds.load(std::memory_order_relaxed)), Duration{},
                    limits::kWireDurationMax);
}

std::optional<Heartbeat> heartbeat_of(const WorkerPage& page) {
  const int64_t at = page.heartbeat_ns.load(std::memory_order_acquire);
  if (at <= 0) return std::nullopt;
  Heartbeat beat;
  beat.step = page.step.load(std::memory_order_relaxed);
  beat.collectives = page.collectives.load(std::memory_order_relaxed);
  beat.phase = page.phase.load(std::memory_order_relaxed);
  // Workers stamp their heartbeats with CLOCK_MONOTONIC.
  beat.age = std::max(Duration{}, read_clock(CLOCK_MONOTONIC) - Duration(at));
  beat.step_takes = time_of(page.step_ns);
  beat.saved = time_of(page.saved_ns);
  beat.computed = time_of(page.compute_ns);
  beat.computed_steps = std::max<int64_t>(0, page.compute_steps.load(std::memory_order_relaxed));
  beat.is_progress_only = page.progress_only.load(std::memory_order_relaxed) != 0;
  return beat;
}

// The worker may write meanwhile, and anything.
SectionTimes section_of(const WorkerPage::Section& section) {
  const int64_t ended = section.ended.load(std::memory_order_acquire);
  const std::string name(section.name, ::strnlen(section.name, sizeof section.name));
  return {text::one_line(name, sizeof section.name), time_of(section.longest_ns),
          std::max<int64_t>(0, ended), time_of(section.limit_ns)};
}

}  // namespace

WorkerChannel::WorkerChannel(boost::asio::io_context& loop, const std::string& name, Events events,
                             std::shared_ptr<Arenas> arenas)
    : loop_(loop),
      events_(std::move(events)),
      listener_(loop),
      pause_(loop, [this] { watch_listener(); }),
      next_turn_(loop, [this] { resume_reading(); }),
      arenas_(std::move(arenas)),
      background_(loop) {
  UniqueFd socket = listen_abstract(name, SOCK_SEQPACKET, kBacklog);
  if (!socket.is_open()) return;
  listener_.assign(socket.release());
  watch_listener();
}

std::optional<ErrorReport> WorkerChannel::FinalReport::error() const {
  if (report.empty()) return std::nullopt;
  ErrorReport error;
  error.message = report.substr(0, report.find('\n'));
  if (error.message.size() != report.size()) error.traceback = report;
  error.file_time = wall_now();  // it has no time stamp of its own
  return error;
}

void WorkerChannel::begin_round(size_t workers, const std::set<int>& survivors) {
  for (auto& [rank, worker] : workers_) {
    if (worker.has_stepped) steppers_.insert(rank);
    if (survivors.contains(rank)) renew(worker);
  }
  std::erase_if(peers_,
                [&](const auto& peer) { return !survivors.contains(peer.second.local_rank); });
  std::erase_if(workers_, [&](const auto& worker) { return !survivors.contains(worker.first); });
  arenas_->set_workers(workers);
  newest_snapshot_ = 0;
  is_stopping_ = false;
}

// A survivor enters a round as a new worker does, but for its connections and its page.
void WorkerChannel::renew(Worker& worker) {
  worker.is_ready = worker.has_stepped = worker.is_regrouping = false;
  worker.report.clear();
  worker.connected = worker.connections;
  if (!worker.page) return;
  WorkerPage& page = *worker.page;
  for (std::atomic<int64_t>* number :
       {&page.heartbeat_ns, &page.step, &page.collectives, &page.step_ns, &page.saved_ns,
        &page.compute_ns, &page.compute_steps, &page.snapshot_written, &page.snapshot_newest}) {
    number->store(0, std::memory_order_release);
  }
  for (WorkerPage::Section& section : page.sections) {
    section.longest_ns.store(0, std::memory_order_release);
    section.ended.store(0, std::memory_order_release);
  }
  for (std::atomic<uint32_t>* number :
       {&page.phase, &page.is_ready, &page.wants_stop, &page.section, &page.progress_only}) {
    number->store(0, std::memory_order_release);
  }
}

bool WorkerChannel::send_to_elastic(int local_rank, const channel::Message& message,
                                    std::span<const int> descriptors) {
  const auto worker = workers_.find(local_rank);
  if (worker == workers_.end() || !worker->second.regroups_by) return false;
  const auto peer = peers_.find(*worker->second.regroups_by);
  if (peer == peers_.end()) return false;
  return send_descriptors(peer->second.socket.native_handle(), channel::encode(message),
                          descriptors);
}

bool WorkerChannel::ask_to_regroup(int local_rank) {
  if (!send_to_elastic(local_rank, channel::Regroup{}, {})) return false;
  workers_.at(local_rank).is_regrouping = true;
  return true;
}

bool WorkerChannel::send_new_round(int local_rank, const std::vector<std::string>& variables,
                                   int out, int err) {
  std::string text;
  for (const std::string& variable : variables) text.append(variable).push_back('\0');
  const Result<UniqueFd> memory =
      sealed_memory("cpprun-round", text.size(), "the round's variables");
  if (!memory) return false;
  const auto size = static_cast<ssize_t>(text.size());
  if (::pwrite(memory->get(), text.data(), text.size(), 0) != size) return false;
  return send_to_elastic(local_rank, channel::NewRound{}, std::array{memory->get(), out, err});
}

void WorkerChannel::ask_to_stop() {
  is_stopping_ = true;
  for (auto& [rank, worker] : workers_) {
    if (worker.page && !worker.is_regrouping)
      worker.page->wants_stop.store(1, std::memory_order_release);
  }
}

const WorkerPage* WorkerChannel::page_of(int local_rank) const {
  const auto worker = workers_.find(local_rank);
  return worker == workers_.end() ? nullptr : worker->second.page.get();
}

bool WorkerChannel::can_save(int local_rank) const {
  const WorkerPage* page = page_of(local_rank);
  return page != nullptr && page->can_save.load(std::memory_order_acquire) != 0;
}

std::optional<Heartbeat> WorkerChannel::heartbeat(int local_rank) const {
  const WorkerPage* page = page_of(local_rank);
  return page != nullptr ? heartbeat_of(*page) : std::nullopt;
}

void WorkerChannel::observe(int local_rank, WorkerObservation& worker) const {
  const WorkerPage* page = page_of(local_rank);
  if (page == nullptr) return;
  worker.beat = heartbeat_of(*page);
  if (worker.beat && worker.beat->is_progress_only) worker.beat.reset();
  const uint32_t current = page->section.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < kWorkerSections; ++i) {
    const SectionTimes section = section_of(page->sections[i]);
    if (section.name.empty()) continue;
    if (i + 1 == current) worker.section = section;
    worker.sections.push_back(section);
  }
  const Duration since = time_of(page->section_since_ns);
  worker.section_age = std::max(Duration{}, read_clock(CLOCK_MONOTONIC) - since);
}

std::optional<int> WorkerChannel::stack_file(int local_rank) const {
  const WorkerPage* page = page_of(local_rank);
  const uint32_t file = page != nullptr ? page->stack_file.load(std::memory_order_acquire) : 0;
  if (file == 0 || file > INT32_MAX) return std::nullopt;
  return static_cast<int>(file) - 1;
}

std::optional<TraceFiles> WorkerChannel::trace_files(int local_rank) const {
  const WorkerPage* page = page_of(local_rank);
  if (page == nullptr) return std::nullopt;
  const uint32_t request = page->trace_request.load(std::memory_order_acquire);
  const uint32_t file = page->trace_file.load(std::memory_order_acquire);
  const auto is_number = [](uint32_t given) { return given > 0 && given <= INT32_MAX; };
  if (!is_number(request) || !is_number(file)) return std::nullopt;
  return TraceFiles{static_cast<int>(request) - 1, static_cast<int>(file) - 1};
}

// Not every program on the channel reports steps. One does if it reports that it starts, or if it
// reported a step in an earlier round.
bool WorkerChannel::made_no_step(int local_rank) const {
  const auto worker = workers_.find(local_rank);
  const bool has_stepped = worker != workers_.end() && worker->second.has_stepped;
  const std::optional<Heartbeat> beat = heartbeat(local_rank);
  const bool is_starting = beat && (beat->phase == kStartingPhase || beat->phase == kReadyPhase);
  return !has_stepped && (is_starting || (!beat && steppers_.contains(local_rank)));
}

WorkerChannel::FinalReport WorkerChannel::worker_exited(int local_rank) {
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    if (peer->second.local_rank != local_rank) {
      ++peer;
      continue;
    }
    // Children of the worker may still send messages.
    for (int n = 0; n < limits::kWorkerLastMessages && read_one(peer->second); ++n) continue;
    peer = peers_.erase(peer);
  }
  FinalReport last;
  last.made_no_step = made_no_step(local_rank);
  const auto found = workers_.find(local_rank);
  if (found == workers_.end()) return last;
  Worker& worker = found->second;
  worker.connections = 0;
  last.report = std::move(worker.report);
  if (worker.page) last.heartbeat = heartbeat_of(*worker.page);
  return last;
}

// ---------------------------------------------------------------- connections

void WorkerChannel::watch_listener() {
  listener_.async_wait(stream_descriptor::wait_read,
                       lifetime_.guard([this](boost::system::error_code error) {
                         if (!error) accept_some();
                       }));
}

void WorkerChannel::accept_some() {
  while (rejected_ < limits::kChannelBurst) {
    if (accept_one()) continue;
    if (errno == EAGAIN) return watch_listener();
    // Out of descriptors: retry after the pause.
    if (errno != EINTR && errno != ECONNABORTED) break;
  }
  rejected_ = 0;
  pause_.set(boot_now() + limits::kChannelPause);
}

bool WorkerChannel::accept_one() {
  UniqueFd socket(
      ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) return false;
  const std::optional<int> rank = local_rank_of(socket.get());
  Worker* worker = rank ? &workers_[*rank] : nullptr;
  const bool is_refused = worker == nullptr || worker->connections >= limits::kWorkerConnections ||
                          worker->connected >= limits::kWorkerConnectionsInAll;
  if (is_refused) {
    ++rejected_;
    return true;
  }
  ++worker->connections;
  ++worker->connected;
  const uint64_t id = next_peer_++;
  peers_.try_emplace(id, Peer{stream_descriptor(loop_, socket.release()), *rank, id});
  watch(id);
  return true;
}

// Every worker leads a session of its own, which no outside process can join: a process in it is
// the worker or its descendant.
std::optional<int> WorkerChannel::local_rank_of(int socket) const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return std::nullopt;
  if (peer.pid <= 0) return std::nullopt;  // in a process namespace that is not visible here
  const pid_t session = ::getsid(peer.pid);
  if (session <= 0) return std::nullopt;
  return events_.worker_of(session);
}

void WorkerChannel::watch(uint64_t id) {
  peers_.at(id).socket.async_wait(stream_descriptor::wait_read,
                                  lifetime_.guard([this, id](boost::system::error_code error) {
                                    if (!error && peers_.contains(id)) on_readable(id);
                                  }));
}

void WorkerChannel::on_readable(uint64_t id) {
  Peer& peer = peers_.at(id);
  if (!may_read(peer)) {
    throttled_.push_back(id);
    if (next_turn_.at().is_never()) next_turn_.set(boot_now() + limits::kChannelPause);
  } else if (read_one(peer) || errno == EAGAIN) {
    watch(id);
  } else {
    drop(id);
  }
}

// Per turn a peer may send limits::kWorkerMessages. More messages wait in its socket, and so does
// their sender.
bool WorkerChannel::may_read(Peer& peer) {
  const Instant now = boot_now();
  if (now >= peer.turn_ends) {
    peer.turn_ends = now + limits::kChannelPause;
    peer.messages = 0;
  }
  return ++peer.messages <= limits::kWorkerMessages;
}

void WorkerChannel::resume_reading() {
  for (uint64_t id : std::exchange(throttled_, {})) {
    if (peers_.contains(id)) watch(id);
  }
}

void WorkerChannel::drop(uint64_t id) {
  const auto peer = peers_.find(id);
  --workers_.at(peer->second.local_rank).connections;
  peers_.erase(peer);
}

// ---------------------------------------------------------------- messages

// False: there is no message (errno EAGAIN: none at the moment), or it is invalid. The call offers
// no room for descriptors, so the kernel closes those that come with a message.
bool WorkerChannel::read_one(Peer& peer) {
  const ssize_t size =
      ::recv(peer.socket.native_handle(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (size < 0) return false;
  errno = EPROTO;
  if (size == 0) return false;
  const Result<channel::Message> message =
      channel::decode({buffer_.data(), static_cast<size_t>(size)});
  const bool is_taken = message && handle(peer, *message);
  if (!is_taken) errno = EPROTO;
  return is_taken;
}

namespace {

// The protocol version that introduced this message: 1 had four, 2 ten, 3 thirteen, 4 fourteen.
uint32_t version_of(const channel::Message& message) {
  return message.index() < 4    ? 1
         : message.index() < 10 ? 2
         : message.index() < 13 ? 3
         : message.index() < 14 ? 4
                                : 5;
}

}  // namespace

// False: the peer must not send this, or does not read its answer; the channel closes its
// connection.
bool WorkerChannel::handle(Peer& peer, const channel::Message& message) {
  if (const auto* hello = std::get_if<channel::Hello>(&message)) return on_hello(peer, *hello);
  if (peer.version < version_of(message)) return false;
  return std::visit([&](const auto& m) { return on(peer, m); }, message);
}

bool WorkerChannel::on_hello(Peer& peer, const channel::Hello& hello) {
  if (peer.version != 0 || hello.version == 0 || hello.version > channel::kVersion) return false;
  Worker& worker = workers_.at(peer.local_rank);
  if (!worker.page) {
    if (!make_page(worker)) return false;
    report_milestone(WorkerMilestone::Connected, peer.local_rank);
  }
  peer.version = hello.version;
  return answer(peer, channel::Page{sizeof(WorkerPage)}, worker.page_memory.get());
}

bool WorkerChannel::make_page(Worker& worker) {
  Result<UniqueFd> memory = sealed_memory("cpprun-worker-page", sizeof(WorkerPage), "a page");
  if (!memory) return false;
  void* at =
      ::mmap(nullptr, sizeof(WorkerPage), PROT_READ | PROT_WRITE, MAP_SHARED, memory->get(), 0);
  if (at == MAP_FAILED) return false;
  worker.page.reset(new (at) WorkerPage);
  worker.page_memory = std::move(*memory);
  worker.page->bytes = sizeof(WorkerPage);
  worker.page->wants_stop.store(is_stopping_ ? 1 : 0, std::memory_order_release);
  worker.page->snapshot_newest.store(newest_snapshot_, std::memory_order_release);
  return true;
}

void WorkerChannel::Unmap::operator()(WorkerPage* page) const {
  ::munmap(page, sizeof(WorkerPage));
}

bool WorkerChannel::on(Peer& peer, const channel::Ready&) {
  Worker& worker = workers_.at(peer.local_rank);
  if (!std::exchange(worker.is_ready, true)) events_.on_ready(peer.local_rank);
  return true;
}

void WorkerChannel::report_milestone(WorkerMilestone milestone, int local_rank) {
  if (events_.on_milestone) events_.on_milestone(local_rank, milestone);
}

bool WorkerChannel::on(Peer& peer, const channel::FirstStep&) {
  Worker& worker = workers_.at(peer.local_rank);
  if (!std::exchange(worker.has_stepped, true))
    report_milestone(WorkerMilestone::Stepped, peer.local_rank);
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::Report& report) {
  workers_.at(peer.local_rank).report = report.text;
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::ArenaRequest& request) {
  channel::Arena arena{request.request_id, 0, {}};
  const Result<Arenas::Piece> piece = arenas_->want(peer.local_rank, request.bytes);
  if (piece) {
    arena.bytes = piece->bytes;
  } else {
    arena.refusal = piece.error().text;
  }
  return answer(peer, arena, piece ? piece->descriptor : -1);
}

bool WorkerChannel::on(Peer& peer, const channel::PeerArenaRequest& request) {
  channel::Arena arena{request.request_id, 0, {}};
  const Result<Arenas::View> view = request.local_rank <= limits::kWorkersPerNode
                                        ? arenas_->view(static_cast<int>(request.local_rank))
                                        : Error{ErrorKind::Refused, "there is no such local rank"};
  if (view) {
    arena.bytes = view->bytes;
  } else {
    arena.refusal = view.error().text;
  }
  return answer(peer, arena, view ? view->descriptor.get() : -1);
}

bool WorkerChannel::on(Peer& peer, const channel::CommitRequest& request) {
  const std::string why = events_.commit_refusal ? events_.commit_refusal() : std::string();
  return answer(peer, channel::Permission{request.request_id, why.empty(), why});
}

bool WorkerChannel::on(Peer& peer, const channel::Snapshot& snapshot) {
  const bool is_sensible = snapshot.step >= 0 && snapshot.path.starts_with('/') &&
                           snapshot.path.find('\0') == std::string::npos;
  if (!is_sensible) return false;
  newest_snapshot_ = std::max(newest_snapshot_, snapshot.step);
  for (auto& [rank, worker] : workers_) {
    if (worker.page)
      worker.page->snapshot_newest.store(newest_snapshot_, std::memory_order_release);
  }
  if (events_.on_snapshot) events_.on_snapshot(peer.local_rank, snapshot.step, snapshot.path);
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::Resumed& resumed) {
  if (resumed.step < -1) return false;
  report_milestone(WorkerMilestone::Resumed, peer.local_rank);
  if (resumed.fell_back && events_.on_fell_back) {
    events_.on_fell_back(peer.local_rank, resumed.step);
  }
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::FaultPermitRequest& request) {
  if (!events_.on_fault_permit_request)
    return answer(peer, channel::Permission{request.request_id, false, "no plan"});
  const auto reply = [this, id = peer.id, number = request.request_id](bool is_permitted) {
    const auto asker = peers_.find(id);  // the peer may have gone meanwhile
    if (asker != peers_.end()) answer(asker->second, channel::Permission{number, is_permitted, {}});
  };
  events_.on_fault_permit_request(peer.local_rank, request, lifetime_.guard(reply));
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::Began& began) {
  if (events_.on_began) events_.on_began(peer.local_rank, began);
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::Elastic&) {
  workers_.at(peer.local_rank).regroups_by = peer.id;
  if (events_.on_can_regroup) events_.on_can_regroup(peer.local_rank);
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::Released& released) {
  const Worker& worker = workers_.at(peer.local_rank);
  if (released.step < -1 || worker.regroups_by != peer.id || !worker.is_regrouping) return false;
  if (events_.on_released) events_.on_released(peer.local_rank, released.step);
  return true;
}

bool WorkerChannel::on(Peer& peer, const channel::ChecksumRequest& request) {
  const uint32_t number = request.request_id;
  const auto refuse = [&](const std::string& why) {
    return answer(peer, channel::Checksums{number, false, why});
  };
  if (peer.is_summing) return refuse("the checksums of an earlier request are not there yet");
  Result<Arenas::View> arena = arenas_->view(peer.local_rank);
  if (!arena) return refuse(arena.error().text);
  const auto ranges = checksum_ranges(request.ranges, arena->bytes);
  if (!ranges) return refuse(ranges.error().text);
  const auto memory = std::make_shared<UniqueFd>(std::move(arena->descriptor));
  const auto compute = [memory, ranges = *ranges] { return crc32s_of(memory->get(), ranges); };
  const auto reply = [this, id = peer.id, number](const Result<std::vector<uint32_t>>& crcs) {
    const auto asker = peers_.find(id);  // the peer may have gone meanwhile
    if (asker == peers_.end()) return;
    asker->second.is_summing = false;
    channel::Checksums given{number, crcs.ok(), {}};
    if (crcs) {
      given.text.assign(reinterpret_cast<const char*>(crcs->data()),
                        crcs->size() * sizeof(uint32_t));
    } else {
      given.text = crcs.error().text;
    }
    answer(asker->second, given);
  };
  if (Status ok = background_.run(compute, reply); !ok) return refuse(ok.error().text);
  peer.is_summing = true;
  return true;
}

// Unread answers hold descriptors, so a peer that does not read them loses its connection.
bool WorkerChannel::answer(Peer& peer, const channel::Message& message, int descriptor) {
  const std::span<const int> attached(&descriptor, descriptor < 0 ? 0 : 1);
  return send_descriptors(peer.socket.native_handle(), channel::encode(message), attached);
}

}  // namespace cpprun
