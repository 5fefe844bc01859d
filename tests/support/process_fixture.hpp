// The base of the process tests: a host on a loop, bad workers, messages from them, and the test's
// own captured console.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/datagram_protocol.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/process/process_host.hpp"

namespace cpprun::test {

bool is_alive(int pid);  // and no zombie

// Puts a pipe in the place of our stdout or stderr, and reads it until restored.
class CaughtStream {
 public:
  explicit CaughtStream(int fd);
  ~CaughtStream() { restore(); }
  std::string restore();  // returns the captured output; ends the capture
  void close_reader();    // as `head` does

 private:
  void put_back();

  int fd_;
  int saved_;
  int read_end_;
  int quit_;  // eventfd
  std::string text_;
  std::thread reader_;
};

// A temporary folder; the destructor removes it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string read_file(const std::string& path);

// Opens the log files of these workers.
Result<LogFiles> open_files_of(const std::vector<WorkerSpec>& workers);

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest();
  ~ProcessTest() override;

  void use_cgroup(bool yes) { options_.use_cgroup = yes; }
  ProcessHost& host();  // made at the first call
  void drop_host() { host_.reset(); }

  // Worker `rank` runs bad_worker with these scripts; its output goes to /dev/null.
  WorkerSpec worker(int rank, std::vector<std::string> scripts) const;
  std::vector<std::string> environment(int rank) const;
  std::string bad_worker() const;
  std::string mini_agent() const;

  // Returns after all workers were spawned.
  void start(const std::vector<WorkerSpec>& workers);
  // The same; an error: a worker could not be started.
  Status try_start(const std::vector<WorkerSpec>& workers);
  // Does not wait for the outcome: is_started_, or start_error_.
  void begin_start(const std::vector<WorkerSpec>& workers);
  // Runs the loop until it holds; fails the test after `seconds`.
  void run_until(const std::function<bool()>& holds, double seconds = 60);
  void run_until_quiet(double seconds = 60);
  // pid that was reported as `name`, 0 if none yet.
  int reported(const std::string& name) const;
  int wait_reported(const std::string& name);
  const WorkerExit& end_of(int rank) const;

  boost::asio::io_context loop_{1};
  ProcessHost::Options options_;
  std::string socket_name_;
  std::vector<std::string> messages_;
  std::vector<WorkerExit> ends_;
  std::vector<StuckProcess> stuck_;  // as last reported
  int stuck_count_ = 0;              // number of reports
  std::function<void(const WorkerExit&)> on_failure_;
  std::function<void(const WorkerExit&)> also_on_end_;
  int quiet_count_ = 0;
  bool is_started_ = false;
  std::optional<Error> start_error_;
  int slow_start_count_ = 0;
  int stdout_closed_count_ = 0;

 private:
  void receive();

  boost::asio::local::datagram_protocol::socket socket_;
  char buffer_[4096];
  std::unique_ptr<ProcessHost> host_;
};

}  // namespace cpprun::test
