// A worker that follows a script, mostly of misbehaviour: bad_worker SCRIPT [SCRIPT ...]
//
// A script is a list of steps separated by ';'. The first one runs; `fork N`, `orphan N` and `bare
// N` run the N-th one (counted from 1) in a child, in a detached grandchild, or after exec with an
// empty environment. `report NAME` sends "NAME <pid>" to the test, to the abstract datagram socket
// TEST_SOCKET; `await N` waits until N reports of this worker and its children were sent.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

char** arguments;
std::string test_socket;
int reports[2] = {-1, -1};  // a pipe with a byte for each report, for `await`

void run(const char* script);

void put(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t done = ::write(fd, data, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) ::_exit(errno == EPIPE ? 77 : 78);
    data += done;
    size -= static_cast<size_t>(done);
  }
}

void put(int fd, const std::string& text) { put(fd, text.data(), text.size()); }

void report(const std::string& text) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ::memcpy(address.sun_path + 1, test_socket.data(), test_socket.size());
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + test_socket.size());
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ::sendto(fd, text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&address), size);
  ::close(fd);
}

const char* script(const std::string& number) { return arguments[atoi(number.c_str())]; }

void fork_script(const std::string& number) {
  if (::fork() != 0) return;
  run(script(number));
  ::_exit(0);
}

// As daemons do: a grandchild in its own session, whose parent has ended.
void orphan_script(const std::string& number) {
  const pid_t middle = ::fork();
  if (middle == 0) {
    ::setsid();
    fork_script(number);
    ::_exit(0);
  }
  ::waitpid(middle, nullptr, 0);
}

// The new process knows one script only, so `bare N` passes it the N-th.
void bare_script(const std::string& number) {
  std::string keep = "TEST_SOCKET=" + test_socket;
  char* environment[] = {keep.data(), nullptr};
  char* words[] = {arguments[0], const_cast<char*>(script(number)), nullptr};
  ::execve("/proc/self/exe", words, environment);
  ::_exit(99);
}

// Numbered lines of 80 bytes, in large writes.
void lines(const std::string& count) {
  std::string block;
  const long n = atol(count.c_str());
  const char* rank = ::getenv("LOCAL_RANK");
  char line[96];
  for (long i = 0; i < n; ++i) {
    ::snprintf(line, sizeof line, "%s:%09ld:%-67s\n", rank == nullptr ? "?" : rank, i,
               "abcdefghijklmnopqrstuvwxyz");
    block += line;
    if (block.size() > 60'000) {
      put(1, block);
      block.clear();
    }
  }
  put(1, block);
}

void all_bytes(const std::string& count) {
  std::string block;
  for (int i = 0; i < 256; ++i) block += static_cast<char>(i);
  for (long i = 0; i < atol(count.c_str()); ++i) put(1, block);
}

void flood(const std::string& bytes) {  // 0: without end
  const std::string block(64 * 1024, 'x');
  const long long total = atoll(bytes.c_str());
  for (long long done = 0; total == 0 || done < total; done += 64 * 1024) put(1, block);
}

// The state that a worker inherits: session, signals, descriptors, parent-death signal.
void state() {
  std::ifstream status("/proc/self/status");
  std::string text = "state", line;
  while (std::getline(status, line)) {
    if (line.starts_with("SigBlk") || line.starts_with("SigIgn") || line.starts_with("SigCgt")) {
      text += " " + line.substr(8);
    }
  }
  int fds = 0, death = 0;
  for (int fd = 0; fd < 1024; ++fd) fds += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  ::prctl(PR_GET_PDEATHSIG, &death);
  // The status file itself is one of the descriptors.
  text += " fds=" + std::to_string(fds - 1) + " death=" + std::to_string(death);
  text += std::string(" session=") + (::getsid(0) == ::getpid() ? "own" : "other");
  report(text);
}

void error_file(const std::string& text) {
  std::ofstream(::getenv("TORCHELASTIC_ERROR_FILE")) << text;
}

void pause_ever(const std::string&) {
  for (;;) ::pause();
}

void print_stdin(const std::string&) {
  char buffer[256];
  const ssize_t size = ::read(0, buffer, sizeof buffer);
  put(1, buffer, size > 0 ? static_cast<size_t>(size) : 0);
}

void report_and_count(const std::string& name) {
  report(name + " " + std::to_string(::getpid()));
  if (reports[1] >= 0) put(reports[1], "r", 1);
}

// Waits until the test opens this FIFO.
void await_fifo(const std::string& path) {
  while (::open(path.c_str(), O_RDONLY | O_CLOEXEC) < 0 && errno == EINTR) {
  }
}

void await_reports(const std::string& count) {
  for (int left = atoi(count.c_str()); left > 0; --left) {
    char byte = 0;
    while (::read(reports[0], &byte, 1) < 0 && errno == EINTR) {
    }
  }
}

const std::map<std::string, std::function<void(const std::string&)>> kSteps{
    {"exit", [](const std::string& n) { ::_exit(atoi(n.c_str())); }},
    {"kill", [](const std::string& n) { ::kill(::getpid(), atoi(n.c_str())); }},
    {"ignore", [](const std::string& n) { ::signal(atoi(n.c_str()), SIG_IGN); }},
    {"stop", [](const std::string&) { ::raise(SIGSTOP); }},
    {"pause", pause_ever},
    {"sleep_ms",
     [](const std::string& n) { ::usleep(static_cast<useconds_t>(atoi(n.c_str())) * 1000); }},
    {"report", report_and_count},
    {"await", await_reports},
    {"await_fifo", await_fifo},
    {"state", [](const std::string&) { state(); }},
    {"fork", fork_script},
    {"orphan", orphan_script},
    {"bare", bare_script},
    {"setsid", [](const std::string&) { ::setsid(); }},
    {"print", [](const std::string& text) { put(1, text + "\n"); }},
    {"part", [](const std::string& text) { put(1, text); }},
    {"eprint", [](const std::string& text) { put(2, text + "\n"); }},
    {"lines", lines},
    {"bytes", all_bytes},
    {"flood", flood},
    {"close_out", [](const std::string&) { ::close(1); }},
    {"errfile", error_file},
    {"stdin", print_stdin},
};

void run(const char* text) {
  std::istringstream steps(text);
  for (std::string step; std::getline(steps, step, ';');) {
    const size_t start = step.find_first_not_of(' ');
    if (start == std::string::npos) continue;
    const size_t space = step.find(' ', start);
    const std::string verb = step.substr(start, space - start);
    const auto found = kSteps.find(verb);
    if (found == kSteps.end()) ::_exit(98);
    found->second(space == std::string::npos ? "" : step.substr(space + 1));
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 98;
  arguments = words;
  if (const char* name = ::getenv("TEST_SOCKET")) test_socket = name;
  bool is_awaited = false;
  for (int i = 1; i < count; ++i) is_awaited |= ::strstr(words[i], "await ") != nullptr;
  if (is_awaited && ::pipe2(reports, O_CLOEXEC) != 0) return 98;
  run(words[1]);
  return 0;
}
