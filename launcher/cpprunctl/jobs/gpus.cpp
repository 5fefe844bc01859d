#include "launcher/cpprunctl/jobs/gpus.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>

#include "common/machine/reap.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun::ctl {
namespace {

constexpr size_t kMostBytes = 64 * 1024;  // enough for hundreds of GPUs

// Runs a program and captures its stdout; the destructor kills it.
class CapturedProgram {
 public:
  explicit CapturedProgram(std::vector<std::string> command) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    from_.reset(ends[0]);
    ::fcntl(from_.get(), F_SETFL, O_NONBLOCK);  // our end only
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), __environ) != 0) pid_ = -1;
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
  }
  ~CapturedProgram() {
    from_.reset();
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    reap(pid_);
  }
  CapturedProgram(const CapturedProgram&) = delete;

  // "" if the program does not end in time.
  std::string output(Duration limit) const {
    using namespace std::chrono;
    const auto until = steady_clock::now() + limit;
    std::string all;
    for (char bytes[4096]; pid_ > 0 && all.size() < kMostBytes;) {
      const ssize_t got = ::read(from_.get(), bytes, sizeof bytes);
      if (got == 0) return all;
      if (got > 0) {
        all.append(bytes, static_cast<size_t>(got));
        continue;
      }
      const auto left = duration_cast<milliseconds>(until - steady_clock::now()).count();
      pollfd more{from_.get(), POLLIN, 0};
      if (left <= 0 || ::poll(&more, 1, static_cast<int>(left)) == 0) return "";
    }
    return "";
  }

 private:
  UniqueFd from_;
  pid_t pid_ = -1;
};

}  // namespace

std::vector<Gpu> parse_gpus(const std::string& csv) {
  constexpr size_t kFields = 5;
  std::vector<Gpu> gpus;
  for (const std::string& line : text::split(csv, '\n')) {
    std::vector<std::string> fields = text::split(line, ',');
    if (fields.size() != kFields) continue;
    for (std::string& field : fields) field = std::string(text::strip(field));
    if (!text::parse_int(fields[0])) continue;
    gpus.push_back({fields[0], fields[1], fields[2], fields[3], fields[4]});
  }
  return gpus;
}

std::string gpus_text(const std::vector<Gpu>& gpus) {
  TextTable table({"GPU", "BUSY", "MEMORY", "NAME"});
  for (const Gpu& gpu : gpus) {
    table.add({gpu.index, gpu.percent + " %", gpu.used + " of " + gpu.total + " MiB", gpu.name});
  }
  return table.is_empty() ? "" : "\nGPUs here:\n" + table.text();
}

std::vector<Gpu> gpus_here(Duration limit) {
  const CapturedProgram program({"nvidia-smi",
                                 "--query-gpu=index,name,utilization.gpu,memory.used,memory.total",
                                 "--format=csv,noheader,nounits"});
  return parse_gpus(program.output(limit));
}

}  // namespace cpprun::ctl
