#include "launcher/cpprunctl/doctor/doctor_pair.hpp"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/http/blocking_socket.hpp"
#include "common/limits/admin.hpp"
#include "common/limits/server.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/no_delay.hpp"
#include "common/machine/own_addresses.hpp"
#include "common/machine/sockets.hpp"
#include "common/text.hpp"

namespace cpprun::ctl {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::string_view kFront = "cpprun-doctor-1 ";
constexpr int kAcceptPauseMs = limits::kAcceptPause / std::chrono::milliseconds(1);
constexpr size_t kSendBytes = 256 * 1024;

int64_t wall_ns() { return read_clock(CLOCK_REALTIME).count(); }

std::string packed(int64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>(static_cast<uint64_t>(value) >> shift);
  }
  return bytes;
}
int64_t unpacked(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return static_cast<int64_t>(value);
}

void answer_echoes(BlockingSocket& connection) {
  for (int i = 0; i < limits::kDoctorEchoes; ++i) {
    const Result<std::string> asked = connection.receive(8);
    if (!asked || asked->size() < 8) return;
    const int64_t had = wall_ns();
    if (!connection.send(packed(had) + packed(wall_ns()))) return;
  }
}

void receive_flood(BlockingSocket& connection) {
  int64_t all = 0;
  for (;;) {
    const Result<std::string> piece = connection.receive(kSendBytes);
    if (!piece || static_cast<size_t>(all) > 2 * limits::kDoctorThroughputBytes) return;
    all += static_cast<int64_t>(piece->size());
    if (piece->size() < kSendBytes) break;
  }
  (void)connection.send(packed(all));
}

void serve_client(int socket, const std::string& secret) {
  BlockingSocket connection(socket,
                            limits::kDoctorConnectTimeout);  // short until the secret is verified
  const std::string front = std::string(kFront) + secret + " ";
  const Result<std::string> head = connection.receive(front.size() + 1);
  if (!head || head->substr(0, head->size() - 1) != front) return;
  const bool is_echo = head->back() == 'e';
  const std::string rest = is_echo ? "cho\n" : "lood\n";
  const Result<std::string> end = connection.receive(rest.size());
  if (!end || *end != rest) return;
  connection.extend(limits::kDoctorPairTimeout);
  is_echo ? answer_echoes(connection) : receive_flood(connection);
}

Result<std::unique_ptr<BlockingSocket>> begin(const Endpoint& there, const std::string& secret,
                                              const char* what) {
  Result<std::unique_ptr<BlockingSocket>> connection = dial(there, limits::kDoctorConnectTimeout);
  if (!connection) return connection;
  (*connection)->extend(limits::kDoctorPairTimeout);
  send_without_delay((*connection)->fd());
  const Status sent = (*connection)->send(std::string(kFront) + secret + " " + what + "\n");
  if (!sent) return sent.error();
  return connection;
}

Status echo(BlockingSocket& connection, doctor::PairFacts& facts) {
  Duration least = Duration::max();
  for (int i = 0; i < limits::kDoctorEchoes; ++i) {
    const int64_t sent_at = wall_ns();
    const SteadyClock::time_point start = SteadyClock::now();
    if (Status sent = connection.send(packed(i)); !sent) return sent;
    const Result<std::string> back = connection.receive(16);
    const Duration took = SteadyClock::now() - start;
    if (!back) return back.error();
    if (back->size() < 16) return Error{ErrorKind::Protocol, "it has hung up"};
    if (took >= least) continue;  // the fastest echo gives the best clock estimate
    least = took;
    const int64_t there = unpacked(*back) / 2 + unpacked(back->substr(8)) / 2;
    facts.clock_ahead = Duration(there - sent_at - took.count() / 2);
  }
  facts.latency = least;
  return {};
}

Status flood(BlockingSocket& connection, doctor::PairFacts& facts) {
  const std::string piece(kSendBytes, 'x');
  const SteadyClock::time_point start = SteadyClock::now();
  size_t sent = 0;
  while (sent < limits::kDoctorThroughputBytes &&
         SteadyClock::now() - start < limits::kDoctorThroughputDuration) {
    if (Status ok = connection.send(piece); !ok) return ok;
    sent += piece.size();
  }
  ::shutdown(connection.fd(), SHUT_WR);
  const Result<std::string> came = connection.receive(8);
  const Duration took = SteadyClock::now() - start;
  if (!came) return came.error();
  if (came->size() < 8) return Error{ErrorKind::Protocol, "it has hung up"};
  facts.bytes_per_s = static_cast<double>(unpacked(*came)) / to_seconds(took);
  return {};
}

// Checks that the node's name resolves here to one of its addresses.
std::string name_error_of(const doctor::NodeCard& node) {
  const Result<ResolvedHost> host = resolve_host(node.name);
  if (!host) return host.error().text;
  for (const std::string& address : host->addresses) {
    if (std::ranges::count(node.addresses, address) > 0) return "";
  }
  return "'" + node.name + "' is " + text::join(host->addresses, ", ") +
         " there, but its own address is " + text::join(node.addresses, ", ");
}

}  // namespace

void PairResponder::run() const {
  for (;;) {
    pollfd both[2] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(both, 2, -1) < 0 && errno != EINTR) return;
    if (both[1].revents != 0) return;
    const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      serve_client(socket, secret_);
    } else if (errno != EAGAIN && errno != ECONNABORTED) {  // perhaps out of descriptors: retry
      ::poll(&both[1], 1, kAcceptPauseMs);
    }
  }
}

PairResponder::PairResponder(int listener, std::string secret)
    : listener_(listener),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      secret_(std::move(secret)),
      thread_([this] { run(); }) {}

PairResponder::~PairResponder() {
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

Result<std::unique_ptr<PairResponder>> PairResponder::start(uint16_t port, std::string secret) {
  const Result<std::vector<int>> opened = open_listeners({"", port});  // one for all interfaces
  if (!opened) return opened.error();
  return std::unique_ptr<PairResponder>(new PairResponder(opened->front(), std::move(secret)));
}

uint16_t PairResponder::port() const { return local_port(listener_.get()); }

doctor::PairFacts measure_pair(const doctor::NodeCard& node) {
  doctor::PairFacts facts;
  facts.name_error = name_error_of(node);
  if (node.addresses.empty()) {
    facts.error = "it has published no address";
    return facts;
  }
  const Endpoint there{node.addresses.front(), static_cast<uint16_t>(node.port)};
  Result<std::unique_ptr<BlockingSocket>> connection = begin(there, node.secret, "echo");
  Status looked = connection ? echo(**connection, facts) : Status(connection.error());
  if (looked) {
    connection = begin(there, node.secret, "flood");
    looked = connection ? flood(**connection, facts) : Status(connection.error());
  }
  if (!looked) facts.error = looked.error().text;
  return facts;
}

}  // namespace cpprun::ctl
