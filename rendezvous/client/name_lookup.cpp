#include "rendezvous/client/name_lookup.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

#include "common/limits/rendezvous.hpp"
#include "common/thread/detached_thread.hpp"

namespace cpprun {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// Posts to a loop while it exists: a look-up may outlive it.
struct Way {
  std::mutex mutex;
  asio::io_context* loop = nullptr;
};

// Closes the Way when its loop is destroyed.
class WayService : public asio::execution_context::service {
 public:
  using key_type = WayService;
  explicit WayService(asio::execution_context& loop) : asio::execution_context::service(loop) {
    way->loop = static_cast<asio::io_context*>(&loop);
  }
  void shutdown() override {
    const std::lock_guard lock(way->mutex);
    way->loop = nullptr;
  }
  const std::shared_ptr<Way> way = std::make_shared<Way>();
};

std::atomic<int>& under_way() {
  static std::atomic<int> count{0};
  return count;
}

NameLookup::Addresses look_up(const Endpoint& endpoint, std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int error = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    why = ::gai_strerror(error);
    return {};
  }
  NameLookup::Addresses addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    tcp::endpoint address;
    address.resize(entry->ai_addrlen);
    std::copy_n(reinterpret_cast<const char*>(entry->ai_addr), entry->ai_addrlen,
                reinterpret_cast<char*>(address.data()));
    addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  if (addresses.empty()) why = "it has no address";
  return addresses;
}

}  // namespace

NameLookup::NameLookup(Callback callback) : callback_(std::move(callback)) {}

std::shared_ptr<NameLookup> NameLookup::start(asio::io_context& loop, const Endpoint& endpoint,
                                              Callback callback) {
  auto made = std::make_shared<NameLookup>(std::move(callback));
  const std::weak_ptr<NameLookup> weak = made;
  const auto way = asio::use_service<WayService>(static_cast<asio::execution_context&>(loop)).way;
  const auto fail = [&loop, weak](const std::string& why) {
    asio::post(loop, [weak, why] {
      if (auto self = weak.lock()) self->report({}, why);
    });
  };
  if (under_way().fetch_add(1) >= limits::kLookupsUnderWay) {
    --under_way();
    fail("the resolver has not answered earlier questions");
    return made;
  }
  const Status started = start_detached_thread([weak, way, endpoint] {
    std::string why;
    Addresses addresses = look_up(endpoint, why);
    --under_way();
    const std::lock_guard lock(way->mutex);
    if (way->loop == nullptr) return;
    asio::post(*way->loop, [weak, addresses = std::move(addresses), why] {
      if (auto self = weak.lock()) self->report(addresses, why);
    });
  });
  if (!started) {
    --under_way();
    fail(started.error().text);
  }
  return made;
}

void NameLookup::report(Addresses addresses, const std::string& why) {
  if (Callback callback = std::exchange(callback_, nullptr)) callback(std::move(addresses), why);
}

}  // namespace cpprun
