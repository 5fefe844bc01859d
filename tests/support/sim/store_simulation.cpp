#include "tests/support/sim/store_simulation.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"
#include "tests/support/sim/store_server.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::array<std::string_view, 6> kKeys{"/a", "/b", "/c", "/n1", "/n2", "/n3"};
constexpr size_t kNumbers = 3;  // keys from this number on are counters
constexpr HostId kServer = 0;
constexpr Duration kFaults = 5s;

// One client, like torch's: it sends a request, and waits for the answer before the next one.
class Client final : public Program {
 public:
  Client(EventQueue& event_queue, Network& network, Prng prng, HostId host,
         std::vector<std::string>& broken)
      : event_queue_(event_queue),
        network_(network),
        prng_(prng),
        broken_(broken),
        program_(network.add(host, *this)) {
    line_ = network_.dial(program_, kServer, kJobPort);
  }

  void die(bool is_reset) {
    is_alive_ = false;
    network_.end(program_, is_reset);
  }
  void set_reading(bool is_reading) {
    network_.set_reading(program_, is_reading);
    if (is_reading) network_.deliver_unread(program_);
  }
  bool is_alive() const { return is_alive_; }
  HostId host() const { return network_.host_of(program_); }
  ConnectionId line() const { return line_; }

  void on_dialled(ConnectionId, bool is_connected, const std::string&) override {
    if (!is_connected) {
      is_alive_ = false;
      return;
    }
    std::string hello;
    tcpstore::put_validate(hello);
    send(hello);
    next_later();
  }
  void on_accepted(ConnectionId) override {}
  void on_bytes(ConnectionId, std::span<const uint8_t> bytes) override {
    for (uint8_t byte : bytes) on_byte(byte);
  }
  void on_ended(ConnectionId, Ending) override { die(true); }

 private:
  enum class Asked { Nothing, Wait, Cancel, Check, Number };

  void send(const std::string& bytes) {
    network_.send(program_, line_, Bytes(bytes.begin(), bytes.end()));
  }
  std::string_view some_key() { return kKeys[static_cast<size_t>(prng_.below(kKeys.size()))]; }

  void next_later() {
    event_queue_.in(prng_.up_to(50ms), [this] {
      if (is_alive_ && asked_ == Asked::Nothing &&
          event_queue_.now().nanoseconds() < kFaults.count()) {
        ask();
      }
    });
  }

  void ask() {
    std::string request;
    const int64_t prng = prng_.below(100);
    if (prng < 25) {
      auto key = kKeys[static_cast<size_t>(prng_.below(kNumbers))];
      tcpstore::put_write(request, tcpstore::Op::Set, key, "value");
    } else if (prng < 40) {
      auto key = kKeys[kNumbers + static_cast<size_t>(prng_.below(3))];
      tcpstore::put_number(request, tcpstore::Op::Add, key, 1);
      asked_ = Asked::Number;
    } else if (prng < 60) {
      tcpstore::put_key(request, tcpstore::Op::DeleteKey, some_key());
      asked_ = Asked::Number;
    } else {
      ask_for_keys(request, prng < 70 ? tcpstore::Op::Check : tcpstore::Op::Wait);
    }
    answer_left_ = asked_ == Asked::Number ? 8 : 1;
    send(request);
    if (asked_ == Asked::Nothing) next_later();
  }

  void ask_for_keys(std::string& request, tcpstore::Op op) {
    std::vector<std::string_view> keys;
    for (int64_t n = prng_.between(1, 4); n > 0; --n) keys.push_back(some_key());
    tcpstore::put_keys(request, op, keys);
    asked_ = op == tcpstore::Op::Check ? Asked::Check : Asked::Wait;
    if (asked_ != Asked::Wait) return;
    if (!prng_.chance(0.7)) return;  // other waits have no timeout
    event_queue_.in(prng_.up_to(500ms), [this, wait = ++waits_] { cancel(wait); });
  }

  void cancel(int64_t wait) {
    if (!is_alive_ || asked_ != Asked::Wait || waits_ != wait) return;
    asked_ = Asked::Cancel;
    std::string request;
    tcpstore::put_bare(request, tcpstore::Op::CancelWait);
    send(request);
  }

  void on_byte(uint8_t byte) {
    if (asked_ == Asked::Nothing) {
      broken_.emplace_back("store: a client receives what it has not asked for");
      return;
    }
    // The answer and the cancel may have crossed, once.
    if (asked_ == Asked::Cancel && byte == tcpstore::kReady && !std::exchange(has_crossed_, true)) {
      return;
    }
    const bool is_wrong = (asked_ == Asked::Wait && byte != tcpstore::kReady) ||
                          (asked_ == Asked::Cancel && byte != tcpstore::kWaitCanceled);
    if (is_wrong) broken_.emplace_back("store: a wait is answered by something else");
    if (--answer_left_ > 0) return;
    asked_ = Asked::Nothing;
    has_crossed_ = false;
    ++waits_;
    next_later();
  }

  EventQueue& event_queue_;
  Network& network_;
  Prng prng_;
  std::vector<std::string>& broken_;
  ProgramId program_ = 0;
  ConnectionId line_ = 0;
  bool is_alive_ = true;
  Asked asked_ = Asked::Nothing;
  int answer_left_ = 0;
  bool has_crossed_ = false;
  int64_t waits_ = 0;
};

class StoreRun {
 public:
  explicit StoreRun(uint64_t seed)
      : prng_(seed ^ 0x5702), network_(event_queue_, trace_, prng_.child(1), options(prng_)) {}

  StoreResult run() {
    const int64_t clients = prng_.between(2, 8);
    for (int64_t i = 0; i < clients; ++i) arrive();
    plan_fault();
    while (event_queue_.step(Instant{} + kFaults)) {
    }
    network_.mend_all();
    for (auto& client : clients_) {
      if (client->is_alive()) client->set_reading(true);
    }
    while (event_queue_.step(Instant{} + kFaults + 20s)) {
    }
    if (server_.overdue() > 0)
      broken_.emplace_back("store: a wait whose keys are there does not end");
    return {broken_, trace_.hash() ^ event_queue_.steps(), server_.waits_begun()};
  }

 private:
  static NetworkOptions options(Prng& prng) {
    NetworkOptions made;
    made.latency_max = prng.up_to(20ms);
    made.delay_mean = prng.up_to(10ms);
    made.split = 0.3 * prng.share();
    return made;
  }
  void arrive() {
    auto number = static_cast<HostId>(clients_.size()) + 1;
    clients_.push_back(std::make_unique<Client>(
        event_queue_, network_, prng_.child(100 + clients_.size()), number, broken_));
  }
  void plan_fault() {
    event_queue_.in(prng_.until_event(200ms), [this] {
      if (event_queue_.now().nanoseconds() >= kFaults.count()) return;
      fault(*clients_[static_cast<size_t>(prng_.below(static_cast<int64_t>(clients_.size())))]);
      plan_fault();
    });
  }
  void fault(Client& client) {
    if (!client.is_alive()) {
      if (clients_.size() < 40) arrive();
      return;
    }
    const int64_t prng = prng_.below(5);
    if (prng == 0) client.die(prng_.chance(0.5));
    if (prng == 1) network_.break_connection(client.line());
    if (prng == 2) {
      network_.cut_off(client.host());
      event_queue_.in(prng_.up_to(2s), [this, &client] { network_.mend_host(client.host()); });
    }
    if (prng == 3) {
      client.set_reading(false);
      event_queue_.in(prng_.up_to(1s), [&client] {
        if (client.is_alive()) client.set_reading(true);
      });
    }
    if (prng == 4) arrive();
  }

  EventQueue event_queue_;
  Trace trace_;
  Prng prng_;
  Network network_;
  std::vector<std::string> broken_;
  StoreServer server_{network_, kServer, broken_};
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace

StoreResult run_store_simulation(uint64_t seed) { return StoreRun(seed).run(); }

}  // namespace cpprun::sim
