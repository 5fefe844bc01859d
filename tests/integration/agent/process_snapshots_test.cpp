// Messages about snapshots that ProcessHost passes between workers and its owner.
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>

#include "agent/process/process_host.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun {
namespace {

class ProcessSnapshots : public ::testing::Test {
 protected:
  // The output of channel_worker for `words`.
  std::string run_worker(std::vector<std::string> words) {
    ProcessHost::Options options;
    options.token = "token" + std::to_string(::getpid());
    options.channel_name = "cpprun/test/snapshots/" + std::to_string(::getpid());
    options.use_cgroup = false;
    events_.on_end = [](const WorkerExit&) {};
    events_.on_all_workers_gone = [this] { loop_.stop(); };
    ProcessHost host(loop_, options, events_);
    WorkerSpec spec;
    spec.argv = {CHANNEL_WORKER};
    for (std::string& word : words) spec.argv.push_back(std::move(word));
    spec.environment = {"CPPRUN_AGENT=" + host.channel_name()};
    spec.out.file = folder_ / "out";
    spec.out.to_console = spec.err.to_console = false;
    const Result<LogFiles> files = test::open_files_of({spec});
    EXPECT_TRUE(files.ok());
    host.start({spec}, *files);
    loop_.restart();
    loop_.run_for(std::chrono::seconds(20));
    EXPECT_TRUE(host.is_idle());
    return test::read_file(folder_ / "out");
  }

  boost::asio::io_context loop_{1};
  test::TemporaryFolder folder_;
  ProcessHost::Events events_;
};

TEST_F(ProcessSnapshots, CommitsAreGrantedOnlyUnderAWorkerLease) {
  EXPECT_EQ(run_worker({"may-commit"}), "rank 0: may commit\n");
  events_.holds_worker_lease = [] { return true; };
  EXPECT_EQ(run_worker({"may-commit"}), "rank 0: may commit\n");
  events_.holds_worker_lease = [] { return false; };
  EXPECT_EQ(run_worker({"may-commit"}),
            "rank 0: may not commit: this node has lost its coordinator\n");
}

TEST_F(ProcessSnapshots, NoticesArriveInOrder) {
  std::vector<std::string> reported;
  events_.on_snapshot = [&](int rank, int64_t step, const std::string& path) {
    reported.push_back(std::to_string(rank) + " " + std::to_string(step) + " " + path);
  };
  run_worker({"snapshot=10", "snapshot=20"});
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(reported,
            (std::vector<std::string>{"0 10 " + here + "/step-10", "0 20 " + here + "/step-20"}));
}

TEST_F(ProcessSnapshots, MemoryOfAnotherJobIsNeverReused) {
  EXPECT_EQ(run_worker({"keep=state", "kept"}), "rank 0: kept 'state'\n");
  EXPECT_EQ(run_worker({"kept"}), "rank 0: kept ''\n");
}

}  // namespace
}  // namespace cpprun
