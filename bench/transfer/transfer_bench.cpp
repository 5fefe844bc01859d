// transfer_bench MIB ROUNDS: one agent's server sends a shard out of memory over loopback, and
// restore_shards() writes it into memory, plain and with TLS in turns. Prints the medians; the
// figures of each round go to stderr. Each side has a CPU of its own, as between two machines.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "agent/daemon/snapshots/replica_transfer.hpp"
#include "agent/daemon/snapshots/snapshot_server.hpp"
#include "common/check.hpp"
#include "common/machine/clock.hpp"
#include "common/tls/job_tls.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun {
namespace {

using snapshot_files::ArenaSlots;

constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";

struct Cost {  // seconds
  double wall = 0;
  double sender = 0;  // CPU time, as the next
  double receiver = 0;
  double cpu = 0;  // of both
};

double cpu_seconds(int of_whom) {
  rusage used{};
  ::getrusage(of_whom, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

enum class Side { Sender, Receiver };

// This thread and those that it starts run on the first CPU of the process, or on the last.
void run_on_cpu_of(Side side) {
  static const cpu_set_t all = [] {
    cpu_set_t found;
    CPPRUN_CHECK(::sched_getaffinity(0, sizeof found, &found) == 0);
    return found;
  }();
  int chosen = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && (chosen < 0 || side == Side::Receiver)) chosen = cpu;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(chosen, &one);
  CPPRUN_CHECK(::sched_setaffinity(0, sizeof one, &one) == 0);
}

std::shared_ptr<Arenas> empty_arenas(uint64_t bytes) {
  auto made = std::make_shared<Arenas>([bytes] { return 2 * ArenaSlots::arena_bytes(bytes); });
  made->set_workers(1);
  return made;
}

std::shared_ptr<Arenas> arenas_with_shard(uint64_t bytes) {
  auto made = empty_arenas(bytes);
  const auto piece = made->want(0, ArenaSlots::arena_bytes(bytes));
  CPPRUN_CHECK(piece.ok());
  void* at =
      ::mmap(nullptr, piece->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, piece->descriptor, 0);
  CPPRUN_CHECK(at != MAP_FAILED);
  ArenaSlots slots({static_cast<std::byte*>(at), piece->bytes});
  const auto room = slots.begin({1, 1, 0, 1}, bytes);
  CPPRUN_CHECK(room.ok());
  for (size_t i = 0; i < room->size(); ++i)
    (*room)[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  slots.staged(archive::crc32(*room));
  CPPRUN_CHECK(slots.complete(1));
  ::munmap(at, piece->bytes);
  return made;
}

// A server, and what a client needs for one kind of connection.
class Way {
 public:
  Way(std::shared_ptr<Arenas> shard, uint64_t bytes, std::shared_ptr<const JobTls> tls)
      : bytes_(bytes), tls_(std::move(tls)) {
    run_on_cpu_of(Side::Sender);
    auto server = SnapshotServer::start("/", "127.0.0.1", {nullptr, std::move(shard)}, tls_);
    CPPRUN_CHECK(server.ok());
    server_ = std::move(*server);
    server_->allow(kSecret);
    run_on_cpu_of(Side::Receiver);
  }

  Cost transfer() const {
    const auto into = empty_arenas(bytes_);
    const ShardSource source{
        {"127.0.0.1", server_->port()}, kSecret, limits::kSnapshotStallTimeout, tls_};
    const double both = cpu_seconds(RUSAGE_SELF);
    const double own = cpu_seconds(RUSAGE_THREAD);
    const Instant start = boot_now();
    const RestoreResult result =
        restore_shards(source, {0, 1, 1}, *into, std::make_shared<CancelToken>());
    const std::chrono::duration<double> wall = boot_now() - start;
    if (!result.status) std::fprintf(stderr, "%s\n", result.status.error().text.c_str());
    CPPRUN_CHECK(result.status.ok() && result.step == 1);
    const double cpu = cpu_seconds(RUSAGE_SELF) - both;
    const double receiver = cpu_seconds(RUSAGE_THREAD) - own;
    return {wall.count(), cpu - receiver, receiver, cpu};
  }

 private:
  const uint64_t bytes_;
  const std::shared_ptr<const JobTls> tls_;
  std::unique_ptr<SnapshotServer> server_;
};

Cost medians(const std::vector<Cost>& costs) {
  const auto median = [&](double Cost::*field) {
    std::vector<double> all;
    for (const Cost& cost : costs) all.push_back(cost.*field);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  };
  return {median(&Cost::wall), median(&Cost::sender), median(&Cost::receiver), median(&Cost::cpu)};
}

void print(FILE* where, const char* name, const Cost& cost) {
  std::fprintf(where,
               "%-5s %.3f s, CPU of the sender %.3f s, of the receiver %.3f s, of both %.3f s\n",
               name, cost.wall, cost.sender, cost.receiver, cost.cpu);
}

int measure(uint64_t mib, int rounds) {
  const uint64_t bytes = mib << 20;
  ::signal(SIGPIPE, SIG_IGN);  // as an agent
  TlsCredentials credentials;
  credentials.secret = *JobSecret::copy_of(kSecret);
  const auto tls = JobTls::load(std::move(credentials), "bench");
  CPPRUN_CHECK(tls.ok());
  const auto shard = arenas_with_shard(bytes);
  const Way plain(shard, bytes, nullptr);
  const Way secure(shard, bytes, *tls);
  std::vector<Cost> of_plain;
  std::vector<Cost> of_tls;
  for (int round = 0; round < rounds; ++round) {
    of_plain.push_back(plain.transfer());
    of_tls.push_back(secure.transfer());
    print(stderr, "plain", of_plain.back());
    print(stderr, "TLS", of_tls.back());
  }
  const Cost a = medians(of_plain);
  const Cost b = medians(of_tls);
  std::printf("%llu MiB, medians of %d\n", static_cast<unsigned long long>(mib), rounds);
  print(stdout, "plain", a);
  print(stdout, "TLS", b);
  std::printf("TLS: speed %.0f %%, CPU %.2f times\n", 100 * a.wall / b.wall, b.cpu / a.cpu);
  return 0;
}

}  // namespace
}  // namespace cpprun

int main(int count, char** words) {
  const int mib = count > 1 ? std::atoi(words[1]) : 128;
  const int rounds = count > 2 ? std::atoi(words[2]) : 9;
  if (mib < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: transfer_bench [MIB [ROUNDS]]\n");
    return 2;
  }
  return cpprun::measure(static_cast<uint64_t>(mib), rounds);
}
