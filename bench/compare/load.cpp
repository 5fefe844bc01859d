// Load generator for TCPStore servers: one thread in a closed loop. It knows the length of every
// reply in advance, so it counts bytes instead of parsing and stays cheaper than any server.
//
//   compare_load PORT PID OPERATION CONNECTIONS DEPTH SECONDS
//
// OPERATION with DEPTH requests in flight per connection: ping, get, add, check, wait (for an
// existing key), compare_set, multi_get (16 keys), set and multi_set (16 keys), which have no reply
// and are each followed by a CHECK. Others: wake: all connections wait for a key that another one
// sets; connect: from the first connect until every connection has the reply to a PING. Values have
// 64 bytes. PID is the server, whose CPU time is measured. Prints a JSON object; times are in µs.
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "bench/compare/connection.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"

namespace cpprun::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;
using tcpstore::Op;

constexpr size_t kPongBytes = 4;
constexpr size_t kSizeBytes = 8;
constexpr size_t kListItems = 16;
constexpr auto kWarmUp = std::chrono::milliseconds(100);
const std::string kValue(64, 'v');

struct Options {
  uint16_t port;
  std::string pid;
  std::string operation;
  size_t connections;
  size_t depth;
  std::chrono::duration<double> seconds;
};

// CPU time in microseconds of all threads of a process, from the scheduler's statistics.
double cpu_of(const std::string& pid) {
  double total = 0;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + pid + "/task", gone)) {
    double nanoseconds = 0;
    std::ifstream(task.path() / "schedstat") >> nanoseconds;
    total += nanoseconds / 1000;
  }
  return total;
}

// `times` need not be sorted, but must not be empty.
double quantile(std::vector<double>& times, double part) {
  const auto at =
      times.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

// The request that a connection repeats, and the size of its reply.
struct Request {
  std::string bytes;
  size_t reply = 0;
};

// Keys of one connection, prepared before the measurement.
class Keys {
 public:
  explicit Keys(size_t id) : name_("/load/" + std::to_string(id)) {
    for (size_t i = 0; i < kListItems; ++i) list_.push_back(name_ + "." + std::to_string(i));
    views_.assign(list_.begin(), list_.end());
  }

  Request preset() const {
    Request made{"", 1};
    tcpstore::put_write(made.bytes, Op::Set, name_, kValue);
    tcpstore::put_multi_set(made.bytes, views_, values());
    return check(std::move(made));
  }

  Request request(std::string_view operation) const {
    Request made{"", 1};
    if (operation == "ping") {
      tcpstore::put_ping(made.bytes, 7);
      made.reply = kPongBytes;
    } else if (operation == "get") {
      tcpstore::put_key(made.bytes, Op::Get, name_);
      made.reply = kSizeBytes + kValue.size();
    } else if (operation == "add") {
      tcpstore::put_number(made.bytes, Op::Add, name_ + "n", 1);
      made.reply = kSizeBytes;
    } else if (operation == "check" || operation == "wait") {
      const std::string_view key = name_;
      tcpstore::put_keys(made.bytes, operation == "check" ? Op::Check : Op::Wait, {&key, 1});
    } else if (operation == "compare_set") {
      tcpstore::put_compare_set(made.bytes, name_, kValue, kValue);
      made.reply = kSizeBytes + kValue.size();
    } else if (operation == "multi_get") {
      tcpstore::put_keys(made.bytes, Op::MultiGet, views_);
      made.reply = kListItems * (kSizeBytes + kValue.size());
    } else if (operation == "multi_set") {
      tcpstore::put_multi_set(made.bytes, views_, values());
      return check(std::move(made));
    } else if (operation == "set") {
      tcpstore::put_write(made.bytes, Op::Set, name_, kValue);
      return check(std::move(made));
    } else {
      die("there is no such operation");
    }
    return made;
  }

 private:
  Request check(Request made) const {
    const std::string_view key = name_;
    tcpstore::put_keys(made.bytes, Op::Check, {&key, 1});
    return made;
  }

  static std::vector<std::string_view> values() {
    return std::vector<std::string_view>(kListItems, kValue);
  }

  std::string name_;
  std::vector<std::string> list_;
  std::vector<std::string_view> views_;
};

// One connection with its requests in flight.
class Lane {
 public:
  Lane(const Options& options, size_t id) : connection_(options.port) {
    const Keys keys(id);
    // The floor server supports only PING, and needs no keys.
    if (options.operation != "ping") {
      connection_.send(keys.preset().bytes);
      // A server that does not store the keys would answer fast but wrong.
      if (connection_.take_byte() != tcpstore::kReady) die("a key that was set is not there");
    }
    request_ = keys.request(options.operation);
  }

  int fd() const { return connection_.fd(); }

  void fire() {
    sent_.push_back(Clock::now());
    connection_.send(request_.bytes);
  }

  // Receives what has arrived; records the time of each complete reply and sends the next request.
  void on_readable(std::vector<double>& times) {
    got_ += connection_.take();
    for (; got_ >= request_.reply; got_ -= request_.reply) {
      times.push_back(Micros(Clock::now() - sent_.front()).count());
      sent_.pop_front();
      fire();
    }
  }

 private:
  Connection connection_;
  Request request_;
  std::deque<Clock::time_point> sent_;
  size_t got_ = 0;
};

class Load {
 public:
  explicit Load(const Options& options) : poll_(epoll_create1(0)) {
    for (size_t i = 0; i < options.connections; ++i) lanes_.emplace_back(options, i);
    for (Lane& lane : lanes_) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.ptr = &lane;
      epoll_ctl(poll_, EPOLL_CTL_ADD, lane.fd(), &event);
      for (size_t i = 0; i < options.depth; ++i) lane.fire();
    }
  }

  // Times of the replies that arrive before `end`.
  std::vector<double> run_until(Clock::time_point end) {
    std::vector<double> times;
    std::array<epoll_event, 256> ready;
    while (Clock::now() < end) {
      const int count = epoll_wait(poll_, ready.data(), ready.size(), 30'000);
      if (count <= 0) die("no reply from the store");
      for (int i = 0; i < count; ++i) {
        static_cast<Lane*>(ready[static_cast<size_t>(i)].data.ptr)->on_readable(times);
      }
    }
    return times;
  }

 private:
  const int poll_;
  std::deque<Lane> lanes_;  // a deque, because epoll holds their addresses
};

void print(std::vector<double>& times, double cpu_per_operation, double wall) {
  if (times.empty()) die("nothing was measured");
  std::printf(
      "{\"operations\": %zu, \"per_second\": %.0f, \"server_cpu\": %.3f, \"p50\": %.1f, \"p99\": "
      "%.1f}\n",
      times.size(), static_cast<double>(times.size()) / wall * 1e6, cpu_per_operation,
      quantile(times, 0.5), quantile(times, 0.99));
}

void run_load(const Options& options) {
  Load load(options);
  load.run_until(Clock::now() + kWarmUp);
  const double before = cpu_of(options.pid);
  const auto begin = Clock::now();
  std::vector<double> times =
      load.run_until(begin + std::chrono::duration_cast<Clock::duration>(options.seconds));
  const double wall = Micros(Clock::now() - begin).count();
  print(times, (cpu_of(options.pid) - before) / static_cast<double>(times.size()), wall);
}

// Measures from a SET until the last waiting connection has its reply.
void run_wake(const Options& options) {
  std::vector<Connection> waiting;
  for (size_t i = 0; i < options.connections; ++i) waiting.emplace_back(options.port);
  const Connection setter(options.port);
  std::vector<double> times;
  const double before = cpu_of(options.pid);
  const auto begin = Clock::now();
  while (Clock::now() < begin + options.seconds) {
    const std::string key =
        "/wake/" + std::to_string(getpid()) + "/" + std::to_string(times.size());
    const std::string_view only = key;
    // The reply to this PING shows that the server has reached the WAIT behind it.
    std::string wait;
    tcpstore::put_ping(wait, 7);
    tcpstore::put_keys(wait, Op::Wait, {&only, 1});
    for (const Connection& each : waiting) each.send(wait);
    for (const Connection& each : waiting) each.skip(kPongBytes);
    std::string set;
    tcpstore::put_write(set, Op::Set, key, kValue);
    const auto start = Clock::now();
    setter.send(set);
    for (const Connection& each : waiting) each.skip(1);
    times.push_back(Micros(Clock::now() - start).count());
  }
  const double wall = Micros(Clock::now() - begin).count();
  print(times, (cpu_of(options.pid) - before) / static_cast<double>(times.size()), wall);
}

void run_connect(const Options& options) {
  std::string ping;
  tcpstore::put_ping(ping, 7);
  const double before = cpu_of(options.pid);
  const auto begin = Clock::now();
  std::vector<Connection> made;
  for (size_t i = 0; i < options.connections; ++i) made.emplace_back(options.port).send(ping);
  for (const Connection& each : made) each.skip(kPongBytes);
  std::vector<double> times{Micros(Clock::now() - begin).count()};
  print(times, (cpu_of(options.pid) - before) / static_cast<double>(made.size()), times[0]);
}

void allow_many_files() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

int run(char** words) {
  const Options options{static_cast<uint16_t>(std::atoi(words[1])),
                        words[2],
                        words[3],
                        std::strtoul(words[4], nullptr, 10),
                        std::strtoul(words[5], nullptr, 10),
                        std::chrono::duration<double>(std::atof(words[6]))};
  allow_many_files();
  if (options.operation == "wake") {
    run_wake(options);
  } else if (options.operation == "connect") {
    run_connect(options);
  } else {
    run_load(options);
  }
  return 0;
}

}  // namespace
}  // namespace cpprun::bench

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fputs("usage: compare_load PORT PID OPERATION CONNECTIONS DEPTH SECONDS\n", stderr);
    return 2;
  }
  return cpprun::bench::run(argv);
}
