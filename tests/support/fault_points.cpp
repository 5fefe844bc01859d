// Fault points for tests, preloaded into cpprun and cpprunctl (LD_PRELOAD): system calls fail in
// ways that kernels allow. Programs of other names that inherit the variable are left alone, and so
// are descriptors with stronger guarantees of the kernel (eventfds, datagrams).
//
//   FAULT_POINTS=accept:0.5,short:0.2    kinds, each with the fraction of calls that fail
//     accept   accept4: ECONNABORTED, EINTR      emfile   accept4: EMFILE
//     short    partial writes         eintr    reading and writing: EINTR
//     full     writing to files: ENOSPC          fsync    fsync, fdatasync: 50 ms later
//   FAULT_POINTS_SEED=7                  FAULT_POINTS_LOG=FILE    a letter for each fault
//
// Nothing here allocates or locks: some callers are between vfork and exec.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

enum Kind { kAccept, kEmfile, kShort, kEintr, kFull, kFsync, kKinds };
constexpr std::array<std::string_view, kKinds> kNames = {"accept", "emfile", "short",
                                                         "eintr",  "full",   "fsync"};
constexpr int kFsyncTakesMs = 50;

std::array<double, kKinds> shares{};
std::atomic<uint64_t> drawn{0};
int log_fd = -1;

double draw() {  // splitmix64
  uint64_t z = drawn.fetch_add(0x9E3779B97F4A7C15) + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<double>((z ^ (z >> 31)) >> 11) / static_cast<double>(uint64_t{1} << 53);
}

bool is_fault_due(Kind kind) {
  if (shares[kind] == 0 || draw() >= shares[kind]) return false;
  const int before = errno;
  if (log_fd >= 0) ::syscall(SYS_write, log_fd, kNames[kind].data(), 1);
  errno = before;
  return true;
}

bool fails(Kind kind, int error) {
  if (!is_fault_due(kind)) return false;
  errno = error;
  return true;
}

bool is_file(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

// Stream sockets and pipes.
bool is_stream(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return false;
  int type = 0;
  socklen_t size = sizeof type;
  return S_ISFIFO(about.st_mode) ||
         (S_ISSOCK(about.st_mode) && ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
          type == SOCK_STREAM);
}

bool is_interrupted(int fd) { return shares[kEintr] > 0 && is_stream(fd) && fails(kEintr, EINTR); }

size_t part_of(int fd, size_t size) {
  if (shares[kShort] == 0 || size < 2 || !(is_stream(fd) || is_file(fd)) || !is_fault_due(kShort)) {
    return size;
  }
  return 1 + static_cast<size_t>(draw() * static_cast<double>(std::min<size_t>(size - 1, 64)));
}

// Whether the sender repeats a partial write itself. Asio treats a partial send as a full socket
// and waits for the next edge of epoll(7), which never comes after our partial write.
bool is_nonblocking(int flags) { return (flags & MSG_DONTWAIT) != 0; }

bool is_full(int fd) { return shares[kFull] > 0 && fd > 2 && is_file(fd) && fails(kFull, ENOSPC); }

__attribute__((constructor)) void read_settings() {
  const std::string_view program = program_invocation_short_name;
  const char* given = std::getenv("FAULT_POINTS");
  if (given == nullptr || !program.starts_with("cpprun")) return;
  if (const char* path = std::getenv("FAULT_POINTS_LOG")) {
    log_fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  if (const char* seed = std::getenv("FAULT_POINTS_SEED")) {
    drawn = std::strtoull(seed, nullptr, 10) + static_cast<uint64_t>(::getpid()) * 0x1000;
  }
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const char* found = std::strstr(given, kNames[kind].data());
    if (found != nullptr) shares[kind] = std::atof(found + kNames[kind].size() + 1);
  }
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// One buffer with the front part of the data.
iovec front_of(int fd, const iovec* parts, size_t count) {
  iovec front{};
  for (size_t i = 0; i < count && front.iov_len == 0; ++i) front = parts[i];
  front.iov_len = part_of(fd, front.iov_len);
  return front;
}

size_t size_of(const iovec* parts, size_t count) {
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += parts[i].iov_len;
  return size;
}

void wait_a_moment() {
  if (is_fault_due(kFsync)) ::poll(nullptr, 0, kFsyncTakesMs);
}

}  // namespace

extern "C" {

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  static const auto real = next<decltype(accept4)>("accept4");
  if (fails(kAccept, draw() < 0.5 ? ECONNABORTED : EINTR) || fails(kEmfile, EMFILE)) return -1;
  return real(fd, address, size, flags);
}

ssize_t read(int fd, void* buffer, size_t size) {
  static const auto real = next<decltype(read)>("read");
  return is_interrupted(fd) ? -1 : real(fd, buffer, size);
}

ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  static const auto real = next<decltype(recv)>("recv");
  return is_interrupted(fd) ? -1 : real(fd, buffer, size, flags);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto real = next<decltype(recvmsg)>("recvmsg");
  return is_interrupted(fd) ? -1 : real(fd, message, flags);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto real = next<decltype(write)>("write");
  if (is_full(fd) || is_interrupted(fd)) return -1;
  return real(fd, bytes, part_of(fd, size));
}

ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto real = next<decltype(writev)>("writev");
  if (is_full(fd) || is_interrupted(fd)) return -1;
  const iovec front = front_of(fd, parts, static_cast<size_t>(count));
  const bool is_whole = shares[kShort] == 0 || front.iov_len == 0;
  return is_whole ? real(fd, parts, count) : real(fd, &front, 1);
}

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  static const auto real = next<decltype(send)>("send");
  if (is_interrupted(fd)) return -1;
  return real(fd, bytes, is_nonblocking(flags) ? part_of(fd, size) : size, flags);
}

// Messages with descriptors stay whole.
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static const auto real = next<decltype(sendmsg)>("sendmsg");
  if (is_interrupted(fd)) return -1;
  const bool may_be_short =
      shares[kShort] > 0 && is_nonblocking(flags) && message->msg_controllen == 0;
  if (!may_be_short || !is_stream(fd)) return real(fd, message, flags);
  iovec front = front_of(fd, message->msg_iov, message->msg_iovlen);
  if (front.iov_len == size_of(message->msg_iov, message->msg_iovlen)) {
    return real(fd, message, flags);
  }
  msghdr part = *message;
  part.msg_iov = &front;
  part.msg_iovlen = 1;
  return real(fd, &part, flags);
}

int fsync(int fd) {
  static const auto real = next<decltype(fsync)>("fsync");
  wait_a_moment();
  return real(fd);
}

int fdatasync(int fd) {
  static const auto real = next<decltype(fdatasync)>("fdatasync");
  wait_a_moment();
  return real(fd);
}

}  // extern "C"
