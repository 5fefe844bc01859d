#include "tests/support/process_fixture.hpp"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/process/proc_files.hpp"

namespace cpprun::test {

namespace asio = boost::asio;

bool is_alive(int pid) {
  const auto stat = read_stat(pid);
  return stat && stat->state != 'Z' && stat->state != 'X';
}

CaughtStream::CaughtStream(int fd) : fd_(fd), quit_(::eventfd(0, EFD_CLOEXEC)) {
  ::fflush(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) ::abort();
  read_end_ = ends[0];
  saved_ = ::dup(fd);
  ::dup2(ends[1], fd);
  ::close(ends[1]);
  reader_ = std::thread([this] {
    std::vector<char> buffer(1 << 20);
    for (;;) {
      pollfd ready[] = {{read_end_, POLLIN, 0}, {quit_, POLLIN, 0}};
      if (::poll(ready, 2, -1) < 0) continue;  // a SIGCHLD
      if (ready[0].revents == 0) return;       // asked to end, and nothing is left
      const ssize_t size = ::read(read_end_, buffer.data(), buffer.size());
      if (size <= 0) return;
      const std::lock_guard lock(mutex_);
      text_.append(buffer.data(), static_cast<size_t>(size));
    }
  });
}

bool CaughtStream::has(const std::string& text) const {
  const std::lock_guard lock(mutex_);
  return text_.find(text) != std::string::npos;
}

void CaughtStream::put_back() {
  if (saved_ < 0) return;
  ::fflush(nullptr);
  ::dup2(saved_, fd_);
  ::close(saved_);
  saved_ = -1;
}

std::string CaughtStream::restore() {
  put_back();
  close_reader();
  if (quit_ >= 0) ::close(quit_);
  quit_ = -1;
  return text_;
}

void CaughtStream::close_reader() {
  if (!reader_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t done = ::write(quit_, &one, sizeof one);
  reader_.join();
  ::close(read_end_);
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "cpprun-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) ::abort();
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Result<LogFiles> open_files_of(const std::vector<WorkerSpec>& workers) {
  std::vector<StreamRoute> routes;
  for (const WorkerSpec& worker : workers) {
    routes.push_back(worker.out);
    routes.push_back(worker.err);
  }
  return open_log_files(routes);
}

ProcessTest::ProcessTest() : socket_(loop_) {
  static std::atomic<int> count{0};
  const std::string name = std::to_string(::getpid()) + "-" + std::to_string(count++);
  socket_name_ = "cpprun-test-" + name;
  options_.token = "t" + std::to_string(::getpid()) + "n" + std::to_string(count);
  socket_.open();
  socket_.bind(asio::local::datagram_protocol::endpoint(std::string(1, '\0') + socket_name_));
  receive();
}

// Tests that kill agents inherit the remaining processes as subreapers; they must not reach the
// next test.
ProcessTest::~ProcessTest() {
  host_.reset();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    const std::vector<int> children = own_children();
    for (int pid : children) ::waitpid(pid, nullptr, WNOHANG);
    if (children.empty() || std::chrono::steady_clock::now() > until) return;
    ::poll(nullptr, 0, 1);
  }
}

void ProcessTest::receive() {
  socket_.async_receive(asio::buffer(buffer_),
                        [this](boost::system::error_code error, size_t size) {
                          if (error) return;
                          messages_.emplace_back(buffer_, size);
                          receive();
                        });
}

ProcessHost& ProcessTest::host() {
  if (host_) return *host_;
  ProcessHost::Events events;
  events.on_start = [this](LocalRank, Rank, int pid, const auto&) {
    if (on_start_) on_start_(pid);
  };
  events.on_failure = [this](const WorkerExit& end) {
    if (on_failure_) on_failure_(end);
  };
  events.on_end = [this](const WorkerExit& end) {
    ends_.push_back(end);
    if (also_on_end_) also_on_end_(end);
  };
  events.on_all_workers_gone = [this] { ++quiet_count_; };
  events.on_started = [this] { is_started_ = true; };
  events.on_start_failed = [this](const Error& error) { start_error_ = error; };
  events.on_slow_start = [this](LocalRank, const std::string&) { ++slow_start_count_; };
  events.on_stuck = [this](std::vector<StuckProcess> all) {
    stuck_ = std::move(all);
    ++stuck_count_;
  };
  events.on_stdout_closed = [this](bool) { ++stdout_closed_count_; };
  host_ = std::make_unique<ProcessHost>(loop_, options_, events);
  return *host_;
}

std::string ProcessTest::bad_worker() const { return BAD_WORKER; }
std::string ProcessTest::mini_agent() const { return MINI_AGENT; }

std::vector<std::string> ProcessTest::environment(int rank) const {
  return {"PATH=/usr/bin:/bin", "TEST_SOCKET=" + socket_name_,
          "LOCAL_RANK=" + std::to_string(rank)};
}

WorkerSpec ProcessTest::worker(int rank, std::vector<std::string> scripts) const {
  WorkerSpec spec;
  spec.local_rank = LocalRank(rank);
  spec.rank = Rank(100 + rank);
  spec.argv = std::move(scripts);
  spec.argv.insert(spec.argv.begin(), BAD_WORKER);
  spec.environment = environment(rank);
  spec.out.to_console = spec.err.to_console = false;
  return spec;
}

void ProcessTest::start(const std::vector<WorkerSpec>& workers) {
  ends_.clear();
  const Status started = try_start(workers);
  ASSERT_TRUE(started.ok()) << started.error().text;
}

Status ProcessTest::try_start(const std::vector<WorkerSpec>& workers) {
  begin_start(workers);
  run_until([this] { return is_started_ || start_error_; });
  return start_error_ ? Status(*start_error_) : Status();
}

void ProcessTest::begin_start(const std::vector<WorkerSpec>& workers) {
  is_started_ = false;
  start_error_.reset();
  const Result<LogFiles> files = open_files_of(workers);
  if (files) return host().start(workers, *files);
  start_error_ = files.error();
}

void ProcessTest::run_until(const std::function<bool()>& holds, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const auto end = std::chrono::time_point_cast<std::chrono::steady_clock::duration>(deadline);
  while (!holds()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "waited in vain";
    // Processes that are not our children end without an event, so the test polls.
    loop_.run_one_for(std::chrono::milliseconds(5));
  }
}

void ProcessTest::run_until_quiet(double seconds) {
  run_until([this] { return quiet_count_ > 0 && host_->is_idle(); }, seconds);
}

int ProcessTest::reported(const std::string& name) const {
  for (const std::string& message : messages_) {
    if (message.starts_with(name + " ")) return atoi(message.c_str() + name.size() + 1);
  }
  return 0;
}

int ProcessTest::wait_reported(const std::string& name) {
  run_until([&] { return reported(name) != 0; });
  return reported(name);
}

const WorkerExit& ProcessTest::end_of(int rank) const {
  for (const WorkerExit& end : ends_) {
    if (end.local_rank.value == rank) return end;
  }
  ADD_FAILURE() << "no end of worker " << rank;
  static const WorkerExit none;
  return none;
}

}  // namespace cpprun::test
