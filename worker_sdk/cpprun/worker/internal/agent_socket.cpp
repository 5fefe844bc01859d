#include "cpprun/worker/internal/agent_socket.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

namespace cpprun::worker {
namespace {

// Accept memory only from a process of our own user or of root.
bool is_trusted(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

// The descriptors passed beside a message.
std::vector<UniqueFd> descriptors_of(msghdr& message) {
  std::vector<UniqueFd> found;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(head) + i * sizeof(int), sizeof descriptor);
      found.emplace_back(descriptor);
    }
  }
  return found;
}

}  // namespace

AgentSocket AgentSocket::connect(const std::string& name) {
  AgentSocket link;
  const bool is_there = link.open(name) && link.receive_page();
  if (!is_there) link.socket_.reset();
  return link;
}

AgentSocket::AgentSocket(AgentSocket&& other) noexcept
    : socket_(std::move(other.socket_)),
      requests_(std::move(other.requests_)),
      page_(std::exchange(other.page_, nullptr)) {}

AgentSocket::~AgentSocket() {
  if (page_ != nullptr) ::munmap(page_, sizeof(WorkerPage));
}

bool AgentSocket::open(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  socket_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  // SO_SNDTIMEO also limits connect() while the agent's backlog is full.
  const auto limit =
      std::chrono::duration_cast<std::chrono::seconds>(limits::kAgentResponseTimeout);
  const timeval timeout{limit.count(), 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  const auto* whole = reinterpret_cast<const sockaddr*>(&address);
  int refused = 0;
  do {
    refused = ::connect(socket_.get(), whole, size);
  } while (refused != 0 && errno == EINTR);  // a signal while the backlog is full
  return refused == 0 && is_trusted(socket_.get());
}

std::optional<AgentSocket::Answer> AgentSocket::receive(Deadline until) const {
  if (!poll_until(socket_.get(), POLLIN, until)) return std::nullopt;
  std::array<uint8_t, channel::kMessageBytes + 1> bytes;
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  iovec body{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t size = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (size <= 0) return std::nullopt;
  std::vector<UniqueFd> descriptors = descriptors_of(message);
  Result<channel::Message> decoded = channel::decode({bytes.data(), static_cast<size_t>(size)});
  if (!decoded) return std::nullopt;
  return Answer{std::move(*decoded), std::move(descriptors)};
}

bool AgentSocket::receive_page() {
  const std::string hello = channel::encode(channel::Hello{});
  if (::send(socket_.get(), hello.data(), hello.size(), MSG_NOSIGNAL) < 0) return false;
  const std::optional<Answer> answer = receive(after(limits::kAgentResponseTimeout));
  const bool is_page = answer && std::holds_alternative<channel::Page>(answer->message);
  return is_page && map(answer->descriptor());
}

bool AgentSocket::map(int memory) {
  if (!is_safe_memory(memory, sizeof(WorkerPage))) return false;
  void* at = ::mmap(nullptr, sizeof(WorkerPage), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (at == MAP_FAILED) return false;
  page_ = static_cast<WorkerPage*>(at);
  const bool is_known = page_->magic == kWorkerPageMagic && page_->version >= 1;
  if (is_known) return true;
  ::munmap(std::exchange(page_, nullptr), sizeof(WorkerPage));
  return false;
}

void AgentSocket::send(const channel::Message& message) const {
  const std::string bytes = channel::encode(message);
  const auto ignored =
      ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  static_cast<void>(ignored);
}

void AgentSocket::shut_down() const { ::shutdown(socket_.get(), SHUT_RDWR); }

std::optional<AgentSocket::Answer> AgentSocket::request(channel::Message message,
                                                        Duration timeout) const {
  const Deadline until = after(timeout);
  const std::lock_guard lock(requests_->mutex);
  const uint32_t request_id = ++requests_->last_request_id;
  std::visit(
      [&](auto& body) {
        if constexpr (requires { body.request_id; }) body.request_id = request_id;
      },
      message);
  const std::string bytes = channel::encode(message);
  // Blocks while the agent's socket is full, at most for the SO_SNDTIMEO set in open().
  if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return std::nullopt;
  for (;;) {
    std::optional<Answer> answer = receive(until);
    if (!answer) return std::nullopt;
    if (channel::request_id_of(answer->message) == request_id) return answer;
  }
}

bool is_safe_memory(int descriptor, uint64_t bytes) {
  struct stat info {};
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(descriptor, &info) == 0 &&
         info.st_size > 0 && static_cast<uint64_t>(info.st_size) >= bytes;
}

}  // namespace cpprun::worker
