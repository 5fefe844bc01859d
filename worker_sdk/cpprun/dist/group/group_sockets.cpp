#include "cpprun/dist/group/group_sockets.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "common/machine/unique_fd.hpp"

namespace cpprun::dist {
namespace {

struct KnownSockets {
  std::mutex mutex;
  bool is_followed = false;
  bool is_shut = false;
  std::set<uint64_t> inodes;
  std::map<uint64_t, UniqueFd> held;  // those that are shut down
};

// Never destroyed: a thread may use it while the process exits.
KnownSockets& known_sockets() {
  static auto& known = *new KnownSockets;
  return known;
}

bool is_option(int socket, int option, int wanted) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

bool is_connection(int socket) {
  const bool is_tcp =
      (is_option(socket, SO_DOMAIN, AF_INET) || is_option(socket, SO_DOMAIN, AF_INET6)) &&
      is_option(socket, SO_TYPE, SOCK_STREAM);
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return is_tcp && is_option(socket, SO_ACCEPTCONN, 0) &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

bool is_socket(int descriptor, struct stat& info) {
  return ::fstat(descriptor, &info) == 0 && S_ISSOCK(info.st_mode);
}

// Duplicates, because another thread may close a descriptor and open it as another one meanwhile.
// Of sockets only: to close the duplicate of a file would release the process's locks on it.
std::vector<std::pair<uint64_t, UniqueFd>> connections() {
  std::vector<std::pair<uint64_t, UniqueFd>> found;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const int descriptor = std::atoi(entry->path().filename().c_str());
    struct stat info {};
    if (!is_socket(descriptor, info)) continue;
    UniqueFd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!is_socket(copy.get(), info) || !is_connection(copy.get())) continue;
    found.emplace_back(info.st_ino, std::move(copy));
  }
  return found;
}

std::set<uint64_t> inodes_of_connections() {
  std::set<uint64_t> inodes;
  for (const auto& [inode, socket] : connections()) inodes.insert(inode);
  return inodes;
}

}  // namespace

void GroupSockets::follow() {
  const std::lock_guard lock(known_sockets().mutex);
  known_sockets().is_followed = true;
}

bool GroupSockets::are_followed() {
  const std::lock_guard lock(known_sockets().mutex);
  return known_sockets().is_followed;
}

void GroupSockets::shut_down() {
  const std::lock_guard lock(known_sockets().mutex);
  known_sockets().is_shut = true;
  for (auto& [inode, socket] : connections()) {
    if (!known_sockets().inodes.contains(inode)) continue;
    ::shutdown(socket.get(), SHUT_RD);
    known_sockets().held.try_emplace(inode, std::move(socket));
  }
}

bool GroupSockets::are_shut_down() {
  const std::lock_guard lock(known_sockets().mutex);
  return known_sockets().is_shut;
}

void GroupSockets::forget() {
  const std::lock_guard lock(known_sockets().mutex);
  known_sockets().is_shut = false;
  known_sockets().inodes.clear();
  known_sockets().held.clear();
}

GroupSockets::Appearing::Appearing() : is_followed_(are_followed()) {
  if (is_followed_) before_ = inodes_of_connections();
}

GroupSockets::Appearing::~Appearing() {
  if (!is_followed_) return;
  std::set<uint64_t> now = inodes_of_connections();
  for (const uint64_t inode : before_) now.erase(inode);
  bool is_late = false;
  {
    const std::lock_guard lock(known_sockets().mutex);
    known_sockets().inodes.merge(now);
    is_late = known_sockets().is_shut;
  }
  if (is_late) shut_down();
}

}  // namespace cpprun::dist
