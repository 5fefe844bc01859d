// The worker of bench/compare, and the floor of its launcher rows: a static program that only
// records when something happened, so that the launcher's time dominates.
//
//   compare_worker exec CMD...               stamps X, executes CMD: the start of a launch
//   compare_worker exit                      stamps S, exits
//   compare_worker wait                      stamps S, waits; SIGTERM: stamps T and dies of it;
//                                            SIGUSR1: stamps E and exits with 0
//   compare_worker lines COUNT LENGTH BATCH  stamps S, prints, stamps E; BATCH 0: a write per line
//   compare_worker spawn N ATTEMPTS CMD...   the floor, without a launcher: N times vfork and exec;
//                                            when one fails, stops the others and starts all again
//
// A stamp is a line in the file $COMPARE_STAMPS: KIND NANOSECONDS NODE LOCAL_RANK WORLD PID.
// A waiting worker exits by itself after four minutes.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr unsigned kSecondsToLive = 240;

int stamps = -1;
// The part of a stamp after the time. Set before signals may arrive.
std::array<char, 200> origin;
int origin_size = 0;

const char* env(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

bool open_stamps() {
  stamps = open(env("COMPARE_STAMPS", ""), O_WRONLY | O_APPEND | O_CLOEXEC);
  origin_size =
      std::snprintf(origin.data(), origin.size(), " %s %s %s %d\n", env("COMPARE_NODE", "-"),
                    env("LOCAL_RANK", "-1"), env("WORLD_SIZE", "-1"), getpid());
  return stamps >= 0 && origin_size > 0 && origin_size < static_cast<int>(origin.size());
}

// Async-signal-safe. One write to an O_APPEND file, so lines of several processes never mix.
void stamp(char kind) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  auto left =
      static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
  std::array<char, 22 + origin.size()> line;
  line[0] = kind;
  line[1] = ' ';
  for (size_t i = 21; i > 1; --i, left /= 10) line[i] = static_cast<char>('0' + left % 10);
  std::copy_n(origin.data(), origin_size, line.data() + 22);
  if (write(stamps, line.data(), 22 + static_cast<size_t>(origin_size)) < 0) _exit(97);
}

void on_term(int) {
  stamp('T');
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);
}

void on_done(int) {
  stamp('E');
  _exit(0);
}

int wait_for_signals() {
  signal(SIGTERM, on_term);
  signal(SIGUSR1, on_done);
  stamp('S');
  alarm(kSecondsToLive);
  for (;;) pause();
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t taken = write(STDOUT_FILENO, text.data(), text.size());
    if (taken < 0) _exit(96);
    text.remove_prefix(static_cast<size_t>(taken));
  }
}

// Lines such as "rank 0 line 17 xxx....", of which all differ and a truncated one is recognizable.
int print_lines(long count, size_t length, size_t batch) {
  stamp('S');
  alarm(kSecondsToLive);
  const std::string head = std::string("rank ") + env("RANK", "0") + " line ";
  std::string text;
  for (long i = 0; i < count; ++i) {
    const size_t begin = text.size();
    text.append(head).append(std::to_string(i)).push_back(' ');
    text.resize(std::max(text.size(), begin + length - 2), 'x');
    text.append(".\n");
    if (text.size() < batch) continue;
    write_all(text);
    text.clear();
  }
  write_all(text);
  stamp('E');
  return 0;
}

std::vector<pid_t> spawn(size_t count, char** command) {
  setenv("WORLD_SIZE", std::to_string(count).c_str(), 1);
  std::vector<pid_t> children;
  for (size_t i = 0; i < count; ++i) {
    setenv("RANK", std::to_string(i).c_str(), 1);
    setenv("LOCAL_RANK", std::to_string(i).c_str(), 1);
    const pid_t child = vfork();
    if (child == 0) {
      execv(command[0], command);
      _exit(127);
    }
    if (child > 0) children.push_back(child);
  }
  return children;
}

// Returns whether all exited with 0; after the first that did not, stops the others.
bool reap(std::vector<pid_t> children) {
  bool is_good = true;
  while (!children.empty()) {
    int status = 0;
    const pid_t gone = wait(&status);
    if (gone < 0) return false;
    std::erase(children, gone);
    if (status == 0 || !is_good) continue;
    is_good = false;
    for (const pid_t child : children) kill(child, SIGTERM);
  }
  return is_good;
}

int without_launcher(size_t count, int attempts, char** command) {
  for (; attempts > 0; --attempts) {
    if (reap(spawn(count, command))) return 0;
  }
  return 1;
}

int run(std::span<char*> words) {
  const std::string_view mode = words[1];
  if (mode == "exec" && words.size() > 2) {
    stamp('X');
    execvp(words[2], &words[2]);
    std::perror("compare_worker: exec");
    return 99;
  }
  if (mode == "wait") return wait_for_signals();
  if (mode == "lines" && words.size() == 5) {
    return print_lines(std::atol(words[2]), std::strtoul(words[3], nullptr, 10),
                       std::strtoul(words[4], nullptr, 10));
  }
  if (mode == "spawn" && words.size() > 4) {
    return without_launcher(std::strtoul(words[2], nullptr, 10), std::atoi(words[3]), &words[4]);
  }
  if (mode != "exit") return 2;
  stamp('S');
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !open_stamps()) {
    std::fputs("compare_worker: needs a mode and $COMPARE_STAMPS, see its source\n", stderr);
    return 2;
  }
  return run({argv, static_cast<size_t>(argc)});
}
