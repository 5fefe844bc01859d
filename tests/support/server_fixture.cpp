#include "tests/support/server_fixture.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fstream>
#include <future>
#include <optional>
#include <thread>

#include "common/check.hpp"

namespace cpprun {
namespace {

int left_ms(std::chrono::steady_clock::time_point until) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

// A signal, such as SIGCHLD of an earlier test's process, does not end the wait.
bool is_ready(int fd, short events, std::chrono::steady_clock::time_point until) {
  pollfd poll{fd, events, 0};
  int ready = -1;
  do {
    ready = ::poll(&poll, 1, left_ms(until));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

struct RunningServer::Inner {
  boost::asio::io_context loop{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{
      loop.get_executor()};
  std::shared_ptr<Store> store;
  std::optional<Server> server;
  std::thread thread;
};

RunningServer::RunningServer(ServerOptions options, ServerHooks hooks)
    : inner_(std::make_unique<Inner>()) {
  if (!hooks.store_for_main_port) {
    hooks.store_for_main_port = [inner = inner_.get()] { return inner->store; };
  }
  hooks.status_json = [] { return std::string("{\"a\": 1}\n"); };
  inner_->server.emplace(inner_->loop, options, std::move(hooks));
  inner_->store = inner_->server->make_store();
  Result<uint16_t> port = inner_->server->listen({"127.0.0.1", 0});
  CPPRUN_CHECK(port.ok());
  port_ = *port;
  inner_->thread = std::thread([this] { inner_->loop.run(); });
}

RunningServer::~RunningServer() {
  run_there([](Server& server) { server.stop(); });
  inner_->guard.reset();
  inner_->thread.join();  // the loop has no work left: nothing of the server may keep it
}

void RunningServer::run_there(const std::function<void(Server&)>& f) {
  std::promise<void> done;
  boost::asio::post(inner_->loop, [&] {
    f(*inner_->server);
    done.set_value();
  });
  CPPRUN_CHECK(done.get_future().wait_for(kDeadline) == std::future_status::ready);
}

Client::Client(uint16_t port) {
  prepare();
  CPPRUN_CHECK(connect(port));
}

Client::Client(uint16_t port, MayFail) {
  prepare();
  connect(port);
}

Client::Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Client::~Client() {
  if (fd_ >= 0) ::close(fd_);
}

void Client::prepare() {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CPPRUN_CHECK(fd_ >= 0);
}

bool Client::connect(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

void Client::send(std::string_view bytes) const {
  auto until = std::chrono::steady_clock::now() + kDeadline;
  while (!bytes.empty()) {
    ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno != EAGAIN || !is_ready(fd_, POLLOUT, until)) return;
  }
}

std::string Client::read(size_t size) const {
  auto until = std::chrono::steady_clock::now() + kDeadline;
  std::string got(size, '\0');
  size_t held = 0;
  while (held < size && is_ready(fd_, POLLIN, until)) {
    ssize_t n = ::recv(fd_, got.data() + held, size - held, 0);
    if (n <= 0) break;
    held += static_cast<size_t>(n);
  }
  got.resize(held);
  return got;
}

bool Client::is_ended() const {
  auto until = std::chrono::steady_clock::now() + kDeadline;
  char buffer[4096];
  while (is_ready(fd_, POLLIN, until)) {
    if (::recv(fd_, buffer, sizeof buffer, 0) <= 0) return true;
  }
  return false;
}

bool Client::has_ended_by_now() const {
  char byte = 0;
  const ssize_t size = ::recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  return size == 0 || (size < 0 && errno == ECONNRESET);
}

void Client::finish() const { ::shutdown(fd_, SHUT_WR); }

void Client::reset() {
  linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(std::exchange(fd_, -1));
}

std::string http(uint16_t port, std::string_view request) {
  Client client(port);
  client.send(request);
  return client.read(1 << 20);
}

bool eventually(const std::function<bool()>& condition) {
  auto until = std::chrono::steady_clock::now() + kDeadline;
  while (std::chrono::steady_clock::now() < until) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

long resident_kib() {
  std::ifstream file("/proc/self/statm");
  long total = 0;
  long resident = 0;
  file >> total >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

int highest_descriptor() {
  int highest = 2;
  for (int fd = 0; fd < 65536; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) highest = fd;
  }
  return highest;
}

namespace {

// `name_of`: getsockname() or getpeername().
template <class NameOf>
std::vector<SocketFacts> sockets_with(NameOf name_of, uint16_t port) {
  std::vector<SocketFacts> all;
  int highest = highest_descriptor();
  for (int fd = 0; fd <= highest; ++fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (name_of(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
    if (address.sin_family != AF_INET || ntohs(address.sin_port) != port) continue;
    int no_delay = 0;
    socklen_t length = sizeof no_delay;
    ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &length);
    int keep_alive = 0;
    ::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &keep_alive, &length);
    int user_timeout = 0;
    ::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout, &length);
    all.push_back({(::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, no_delay != 0,
                   keep_alive != 0 && user_timeout == 60'000});
  }
  return all;
}

}  // namespace

std::vector<SocketFacts> sockets_of_port(uint16_t port) {
  return sockets_with(::getsockname, port);
}

std::vector<SocketFacts> sockets_to_port(uint16_t port) {
  return sockets_with(::getpeername, port);
}

std::vector<int> fill_descriptors() {
  std::vector<int> all;
  for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.push_back(fd);
  return all;
}

}  // namespace cpprun
