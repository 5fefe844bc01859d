#include "agent/process/worker_channel.hpp"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.hpp"

namespace cpprun {
namespace {

using boost::asio::posix::stream_descriptor;

constexpr int kBacklog = 256;  // who finds it full waits in connect

UniqueFd listen_at(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof address.sun_path) return UniqueFd();
  ::memcpy(address.sun_path + 1, name.data(), name.size());  // a leading 0: abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return socket;
  const auto* whole = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), whole, size) < 0 || ::listen(socket.get(), kBacklog) < 0) {
    return UniqueFd();
  }
  return socket;
}

// The workers' clock for heartbeats.
int64_t monotonic_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::optional<Heartbeat> heartbeat_of(WorkerPage& page) {
  const int64_t at = page.heartbeat_ns.load(std::memory_order_acquire);
  if (at <= 0) return std::nullopt;
  Heartbeat beat;
  beat.step = page.step.load(std::memory_order_relaxed);
  beat.collectives = page.collectives.load(std::memory_order_relaxed);
  beat.phase = page.phase.load(std::memory_order_relaxed);
  beat.age = Duration(std::max<int64_t>(0, monotonic_ns() - at));
  return beat;
}

// A datagram with a descriptor beside it. False if the peer has no room for it: it has said hello
// and nothing was said to it before, so it is none that means well.
bool send_with(int socket, const std::string& bytes, int descriptor) {
  iovec body{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  ::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  const auto sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace

WorkerChannel::WorkerChannel(boost::asio::io_context& loop, const std::string& name, Events events)
    : loop_(loop),
      events_(std::move(events)),
      listener_(loop),
      pause_(loop, [this] { watch_listener(); }) {
  UniqueFd socket = listen_at(name);
  if (!socket.is_open()) return;
  listener_.assign(socket.release());
  watch_listener();
}

void WorkerChannel::begin_round() {
  peers_.clear();
  workers_.clear();
  is_stopping_ = false;
}

void WorkerChannel::ask_to_stop() {
  is_stopping_ = true;
  for (auto& [rank, worker] : workers_) {
    if (worker.page) worker.page->page().wants_stop.store(1, std::memory_order_release);
  }
}

WorkerChannel::LastWords WorkerChannel::worker_ended(int local_rank) {
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    if (peer->second.local_rank != local_rank) {
      ++peer;
      continue;
    }
    while (read_one(peer->second)) continue;
    peer = peers_.erase(peer);
  }
  const auto found = workers_.find(local_rank);
  if (found == workers_.end()) return {};
  Worker& worker = found->second;
  worker.connections = 0;
  LastWords words;
  words.report = std::move(worker.report);
  if (worker.page) words.heartbeat = heartbeat_of(worker.page->page());
  return words;
}

// ---------------------------------------------------------------- connections

void WorkerChannel::watch_listener() {
  listener_.async_wait(stream_descriptor::wait_read,
                       [this, alive = std::weak_ptr<int>(life_)](boost::system::error_code error) {
                         if (!error && !alive.expired()) accept_some();
                       });
}

void WorkerChannel::accept_some() {
  while (turned_away_ < limits::kChannelBurst) {
    if (accept_one()) continue;
    if (errno == EAGAIN) return watch_listener();
    if (errno != EINTR && errno != ECONNABORTED) break;  // no descriptors: one will be free
  }
  turned_away_ = 0;
  pause_.set(boot_now() + limits::kChannelPause);
}

bool WorkerChannel::accept_one() {
  UniqueFd socket(
      ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) return false;
  const std::optional<int> rank = local_rank_of(socket.get());
  Worker* worker = rank ? &workers_[*rank] : nullptr;
  const bool is_too_much = worker == nullptr || worker->connections >= limits::kWorkerConnections ||
                           worker->connected >= limits::kWorkerConnectionsInAll;
  if (is_too_much) {
    ++turned_away_;
    return true;
  }
  ++worker->connections;
  ++worker->connected;
  const uint64_t id = next_peer_++;
  peers_.try_emplace(id, Peer{stream_descriptor(loop_, socket.release()), *rank});
  watch(id);
  return true;
}

// Every worker leads a session of its own, which nobody can enter from outside: who is in it is the
// worker or was started by it.
std::optional<int> WorkerChannel::local_rank_of(int socket) const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return std::nullopt;
  if (peer.pid <= 0) return std::nullopt;  // of a process namespace that we don't see
  const pid_t session = ::getsid(peer.pid);
  if (session <= 0) return std::nullopt;
  return events_.worker_of(session);
}

void WorkerChannel::watch(uint64_t id) {
  peers_.at(id).socket.async_wait(
      stream_descriptor::wait_read,
      [this, id, alive = std::weak_ptr<int>(life_)](boost::system::error_code error) {
        if (!error && !alive.expired() && peers_.contains(id)) on_readable(id);
      });
}

void WorkerChannel::on_readable(uint64_t id) {
  if (read_one(peers_.at(id)) || errno == EAGAIN) {
    watch(id);
  } else {
    drop(id);
  }
}

void WorkerChannel::drop(uint64_t id) {
  const auto peer = peers_.find(id);
  --workers_.at(peer->second.local_rank).connections;
  peers_.erase(peer);
}

// ---------------------------------------------------------------- messages

// False: nothing more comes (errno EAGAIN: for now), or it was nothing that is taken. Descriptors
// that come with it are thrown away by the kernel, because there is no room for any.
bool WorkerChannel::read_one(Peer& peer) {
  const ssize_t size =
      ::recv(peer.socket.native_handle(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (size < 0) return false;
  errno = EPROTO;
  if (size == 0 || ++peer.messages > limits::kWorkerMessages) return false;
  const Result<channel::Message> message =
      channel::decode({buffer_.data(), static_cast<size_t>(size)});
  const bool is_taken = message && take(peer, *message);
  if (!is_taken) errno = EPROTO;
  return is_taken;
}

bool WorkerChannel::take(Peer& peer, const channel::Message& message) {
  if (const auto* hello = std::get_if<channel::Hello>(&message)) {
    return welcome(peer, hello->version);
  }
  if (!peer.is_welcome) return false;
  Worker& worker = workers_.at(peer.local_rank);
  if (const auto* report = std::get_if<channel::Report>(&message)) {
    worker.report = report->text;
    return true;
  }
  if (!std::holds_alternative<channel::Ready>(message)) return false;
  if (!std::exchange(worker.is_ready, true)) events_.on_ready(peer.local_rank);
  return true;
}

bool WorkerChannel::welcome(Peer& peer, uint32_t version) {
  if (peer.is_welcome || version != channel::kVersion) return false;
  Worker& worker = workers_.at(peer.local_rank);
  if (!worker.page) {
    Result<SharedPage> page = SharedPage::make();
    if (!page) return false;
    worker.page.emplace(std::move(*page));
    worker.page->page().wants_stop.store(is_stopping_ ? 1 : 0, std::memory_order_release);
  }
  const std::string answer = channel::encode(channel::Page{sizeof(WorkerPage)});
  peer.is_welcome = send_with(peer.socket.native_handle(), answer, worker.page->descriptor());
  return peer.is_welcome;
}

}  // namespace cpprun
