// The floor of the store rows: a server that only answers PING; one thread, one epoll, one recv and
// one send per ready connection. Its cost is that of TCP in the kernel.
//
//   compare_pong PORT
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

namespace {

constexpr size_t kValidateBytes = 5;  // first message of a client
constexpr size_t kPingBytes = 5;
constexpr size_t kPongBytes = 4;

int listen_on(uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_bound = bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  return is_bound && listen(listener, SOMAXCONN) == 0 ? listener : -1;
}

class Pong {
 public:
  explicit Pong(int listener) : listener_(listener), poll_(epoll_create1(0)) { watch(listener); }

  void run() {
    std::array<epoll_event, 256> ready;
    for (;;) {
      const int count = epoll_wait(poll_, ready.data(), ready.size(), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = ready[static_cast<size_t>(i)].data.fd;
        if (fd == listener_) {
          welcome();
        } else if (!serve(fd)) {
          close(fd);
        }
      }
    }
  }

 private:
  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
  }

  void welcome() {
    const int fd = accept(listener_, nullptr, nullptr);
    if (fd < 0) return;
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    seen_[fd] = 0;
    watch(fd);
  }

  // False if the connection is closed.
  bool serve(int fd) {
    const ssize_t got = recv(fd, in_.data(), in_.size(), 0);
    if (got <= 0) return false;
    uint64_t& seen = seen_[fd];
    const uint64_t before = pings(seen);
    seen += static_cast<uint64_t>(got);
    const size_t answer = kPongBytes * (pings(seen) - before);
    return answer == 0 || send(fd, out_.data(), answer, MSG_NOSIGNAL) >= 0;
  }

  static uint64_t pings(uint64_t bytes) {
    return (std::max(bytes, kValidateBytes) - kValidateBytes) / kPingBytes;
  }

  const int listener_;
  const int poll_;
  std::unordered_map<int, uint64_t> seen_;  // bytes received per connection
  std::array<char, 1 << 16> in_{};
  std::array<char, 1 << 16> out_{};
};

}  // namespace

int main(int argc, char** argv) {
  const int listener = listen_on(static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0));
  if (listener < 0) {
    std::perror("compare_pong: cannot listen");
    return 1;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Pong(listener).run();
}
