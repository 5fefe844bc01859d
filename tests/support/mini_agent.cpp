// A minimal agent: a reaper process, a host, a loop. For tests that kill it.
//
//   mini_agent <cgroup: 0|1> <token> SCRIPT [SCRIPT ...]     starts two workers: bad_worker SCRIPT
//   ...
//
// Sends "agent <pid> <reaper process's pid>" to TEST_SOCKET once its workers run; ends when they
// have.
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "agent/process/cleanup/cgroup.hpp"
#include "agent/process/cleanup/reaper_handle.hpp"
#include "agent/process/process_host.hpp"

namespace {

void report(const std::string& text) {
  const std::string name = ::getenv("TEST_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ::sendto(fd, text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&address), size);
  ::close(fd);
}

cpprun::WorkerSpec spec(int rank, char** scripts) {
  cpprun::WorkerSpec worker;
  worker.local_rank = cpprun::LocalRank(rank);
  worker.rank = cpprun::Rank(rank);
  worker.argv = {BAD_WORKER};
  for (; *scripts != nullptr; ++scripts) worker.argv.emplace_back(*scripts);
  for (char** entry = environ; *entry != nullptr; ++entry) worker.environment.emplace_back(*entry);
  worker.environment.push_back("LOCAL_RANK=" + std::to_string(rank));
  return worker;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  const bool use_cgroup = words[1][0] == '1';
  const std::string token = words[2];
  auto reaper = cpprun::ReaperHandle::start(token, use_cgroup ? cpprun::cgroup_folder(token) : "");
  if (!reaper) return 3;
  boost::asio::io_context loop(1);
  cpprun::ProcessHost::Events events;
  events.on_end = [](const cpprun::WorkerExit&) {};
  events.on_started = [&] {
    report("agent " + std::to_string(::getpid()) + " " + std::to_string((*reaper)->pid()));
  };
  cpprun::ProcessHost host(loop, {token, use_cgroup}, events);
  host.start({spec(0, words + 3), spec(1, words + 3)}, {});
  loop.run();
  return 0;
}
