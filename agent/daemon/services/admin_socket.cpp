#include "agent/daemon/services/admin_socket.hpp"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "common/limits/admin.hpp"
#include "common/limits/channel.hpp"
#include "common/limits/server.hpp"
#include "common/machine/identity.hpp"
#include "common/machine/sockets.hpp"
#include "common/version.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun {
namespace {

namespace asio = boost::asio;
using admin::AdminQuery;
using asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr int kBacklog = 16;

std::string fresh_name() {
  return std::string(admin::kSocketPrefix) + std::to_string(::getpid()) + "." +
         random_hex().substr(0, 16);
}

bool may_ask(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

}  // namespace

// One connection. Its pending operations own it.
class AdminSocket::Peer : public std::enable_shared_from_this<AdminSocket::Peer> {
 public:
  Peer(asio::io_context& loop, UniqueFd socket, Verb heard)
      : socket_(loop, socket.release()),
        timer_(loop, [this] { close(); }),
        heard_(std::move(heard)) {}

  void start() {
    timer_.set(boot_now() + limits::kAdminRequestTimeout);
    asio::async_read(socket_, asio::buffer(length_),
                     [self = shared_from_this()](error_code error, size_t) {
                       if (!error) self->read_body();
                     });
  }
  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void read_body() {
    const std::string_view four(length_.data(), length_.size());
    const auto bytes = control::frame_length(four, limits::kControlFrameBytes);
    if (!bytes) return;
    body_.resize(*bytes);
    asio::async_read(socket_, asio::buffer(body_),
                     [self = shared_from_this()](error_code error, size_t) {
                       if (!error) self->ask();
                     });
  }

  void ask() {
    timer_.set(boot_now() + limits::kAdminReplyTimeout);
    Result<AdminQuery> query = admin::decode_query(body_);
    if (!query) return answer(admin::refusal(query.error().text));
    heard_(*query, [self = shared_from_this()](std::string body) { self->answer(body); });
  }

  void answer(const std::string& body) {
    if (!socket_.is_open() || std::exchange(is_answered_, true)) return;
    const bool fits = !body.empty() && body.size() <= limits::kAdminReplyBytes;
    body_.clear();
    control::append_frame(body_, fits ? body : admin::refusal("the answer is too long"));
    asio::async_write(socket_, asio::buffer(body_),
                      [self = shared_from_this()](error_code, size_t) { self->close(); });
  }

  stream_descriptor socket_;
  Timer timer_;
  Verb heard_;
  std::array<char, 4> length_{};
  std::string body_;
  bool is_answered_ = false;
};

AdminSocket::~AdminSocket() {
  for (const std::weak_ptr<Peer>& peer : peers_) {
    if (auto alive = peer.lock()) alive->close();
  }
}

Status AdminSocket::open() {
  UniqueFd socket = listen_abstract(fresh_name(), SOCK_STREAM, kBacklog);
  if (!socket.is_open()) {
    return system_error("cpprunctl can't reach this agent: no unix socket could be opened", errno);
  }
  listener_.assign(socket.release());
  watch();
  return {};
}

void AdminSocket::watch() {
  listener_.async_wait(stream_descriptor::wait_read, lifetime_.guard([this](error_code error) {
    if (!error) accept_some();
  }));
}

void AdminSocket::accept_some() {
  for (int n = 0; n < limits::kChannelBurst; ++n) {
    UniqueFd socket(
        ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_open()) {
      take(std::move(socket));
    } else if (errno == EAGAIN) {
      return watch();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      break;  // out of descriptors: try again after the pause
    }
  }
  pause_.set(boot_now() + limits::kChannelPause);
}

void AdminSocket::take(UniqueFd socket) {
  std::erase_if(peers_, [](const std::weak_ptr<Peer>& peer) { return peer.expired(); });
  if (peers_.size() >= limits::kAdminConnections || !may_ask(socket.get())) return;
  const auto heard = [this](const AdminQuery& query, Answer answer) {
    handle(query, std::move(answer));
  };
  auto peer = std::make_shared<Peer>(loop_, std::move(socket), lifetime_.guard(heard));
  peers_.push_back(peer);
  peer->start();
}

void AdminSocket::handle(const AdminQuery& query, Answer answer) {
  const auto verb = verbs_.find(query.verb);
  if (verb == verbs_.end()) {
    return answer(admin::refusal("this agent (cpprun " + version() + ") knows no '" + query.verb +
                                 "'; use the cpprunctl of its version"));
  }
  verb->second(query, std::move(answer));
}

}  // namespace cpprun
