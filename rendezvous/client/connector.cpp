#include "rendezvous/client/connector.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "common/machine/dead_peer.hpp"

namespace cpprun {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {
// Against a host that drops packets the kernel alone would try for two minutes.
constexpr std::chrono::seconds kConnectLimit{5};
}  // namespace

Connector::Connector(asio::io_context& loop, Callback callback, Found found, InProcess in_process)
    : loop_(loop),
      callback_(std::move(callback)),
      found_(std::move(found)),
      in_process_(std::move(in_process)),
      limit_(loop) {}

std::string unmapped(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

std::shared_ptr<Connector> Connector::start(asio::io_context& loop, const Endpoint& endpoint,
                                            Callback callback, Found found, InProcess in_process,
                                            std::optional<Endpoint> last_known) {
  auto attempt = std::make_shared<Connector>(loop, std::move(callback), std::move(found),
                                             std::move(in_process));
  attempt->last_known_ = std::move(last_known);
  error_code error;
  const asio::ip::address numeric = asio::ip::make_address(endpoint.host, error);
  if (!error) {
    attempt->connect_to({tcp::endpoint(numeric, endpoint.port)}, "");
  } else if (endpoint.host == "localhost") {
    attempt->connect_to({tcp::endpoint(asio::ip::address_v4::loopback(), endpoint.port),
                         tcp::endpoint(asio::ip::address_v6::loopback(), endpoint.port)},
                        "");
  } else {
    attempt->look_up(endpoint);
  }
  return attempt;
}

void Connector::cancel() {
  callback_ = nullptr;
  found_ = nullptr;
  in_process_ = nullptr;
  lookup_.reset();
  error_code ignored;
  limit_.cancel();
  for (auto& socket : sockets_) {
    if (socket) socket->close(ignored);
  }
}

void Connector::look_up(const Endpoint& endpoint) {
  lookup_ = NameLookup::start(loop_, endpoint,
                              [weak = weak_from_this(), host = endpoint.host](
                                  NameLookup::Addresses addresses, const std::string& why) {
                                const std::shared_ptr<Connector> self = weak.lock();
                                if (!self || !self->callback_) return;
                                self->connect_to(
                                    std::move(addresses),
                                    "the name '" + host + "' can't be resolved (" + why + ")");
                              });
}

// `why`: the reason if there is no address.
void Connector::connect_to(std::vector<tcp::endpoint> addresses, const std::string& why) {
  std::vector<std::string> names;
  for (const tcp::endpoint& address : addresses) names.push_back(unmapped(address.address()));
  std::optional<Endpoint> instead = found_ ? found_(names) : std::nullopt;
  if (!instead && addresses.empty()) instead = last_known_;
  if (instead) addresses = {tcp::endpoint(asio::ip::make_address(instead->host), instead->port)};
  if (addresses.empty()) return complete({nullptr, why});
  if (addresses.size() == 1 && try_in_process(addresses.front())) return;
  try_all(std::move(addresses));
}

bool Connector::try_in_process(const tcp::endpoint& at) {
  const Endpoint peer{unmapped(at.address()), at.port()};
  UniqueFd end = in_process_ ? in_process_(peer) : UniqueFd();
  if (!end.is_open()) return false;
  auto socket = std::make_unique<Socket>(loop_);
  error_code error;
  socket->assign(tcp::v4(), end.get(), error);  // Asio uses the family only to open sockets
  if (error) return false;
  end.release();
  sockets_.push_back(std::move(socket));
  asio::post(loop_, [self = shared_from_this(), peer] {
    if (!self->callback_) return;
    self->complete({std::move(self->sockets_.front()), "", {}, peer.host, peer});
  });
  return true;
}

void Connector::try_all(std::vector<tcp::endpoint> addresses) {
  open_ = addresses.size();
  for (size_t i = 0; i < addresses.size(); ++i) {
    sockets_.push_back(std::make_unique<Socket>(loop_));
    sockets_[i]->async_connect(addresses[i],
                               [self = shared_from_this(), i, at = addresses[i]](error_code error) {
                                 self->on_connected(i, at, error);
                               });
  }
  // A loopback connect ends at once, and even a cancelled Asio timer would wake an idle agent.
  auto is_near = [](const tcp::endpoint& at) { return at.address().is_loopback(); };
  if (std::all_of(addresses.begin(), addresses.end(), is_near)) return;
  limit_.expires_after(kConnectLimit);
  limit_.async_wait([self = shared_from_this()](error_code error) {
    if (error) return;
    error_code ignored;
    for (auto& socket : self->sockets_) {
      if (socket) socket->close(ignored);
    }
  });
}

void Connector::on_connected(size_t index, const tcp::endpoint& at, const error_code& error) {
  --open_;
  if (!callback_) return;
  if (!error) {
    error_code ignored;
    sockets_[index]->set_option(tcp::no_delay(true), ignored);
    detect_dead_peer(sockets_[index]->native_handle());
    const std::string local = unmapped(sockets_[index]->local_endpoint(ignored).address());
    complete({std::move(sockets_[index]), "", {}, local, {unmapped(at.address()), at.port()}});
    return;
  }
  std::string reason = error == asio::error::operation_aborted ? "no answer" : error.message();
  const std::string address = unmapped(at.address());
  why_ += (why_.empty() ? "" : ", ") + address + ": " + reason;
  if (error == asio::error::connection_refused) refused_.push_back({address, at.port()});
  if (open_ == 0) complete({nullptr, why_, refused_});
}

void Connector::complete(Outcome outcome) {
  Callback callback = std::exchange(callback_, nullptr);
  cancel();
  if (callback) callback(std::move(outcome));
}

}  // namespace cpprun
