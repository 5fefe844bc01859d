// Makes one call on a thread with a LoopMark, for tests/integration/test_loop_check.py.
//
//   loop_probe CALL FOLDER     open, rename, unlink, mkdir, stat, fsync, wait, sleep, write,
//   lookup:
//                              refused. wait-nohang, unblocking, thread, child, unmarked,
//                              write-pipe, lookup-number: may be made
//
// Prints "made" once the call has returned.
#include <fcntl.h>
#include <netdb.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "common/thread/blocked_signals.hpp"
#include "common/thread/loop_mark.hpp"

namespace {

using cpprun::BlockedSignals;
using cpprun::LoopMark;
using cpprun::Unblocking;

std::string file;  // in the folder; it exists

void open_file() {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) ::_exit(3);
  ::close(fd);
}

void write_to(int fd) {
  if (::write(fd, "x", 1) != 1) ::_exit(3);
}

void look_up(const char* host, int flags) {
  addrinfo hints{};
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host, "80", &hints, &found) == 0) ::freeaddrinfo(found);
}

void wait_for_children(int options) {
  siginfo_t info{};
  ::waitid(P_ALL, 0, &info, WEXITED | options);
}

void on_another_thread(const std::function<void()>& work) {
  const BlockedSignals blocked;
  std::thread(work).join();
}

void in_a_child() {
  const int pid = ::fork();
  if (pid == 0) {
    const Unblocking child("no loop");
    open_file();
    ::_exit(0);
  }
  int status = 0;
  const Unblocking end("the child ends at once");
  if (::waitpid(pid, &status, 0) != pid || status != 0) ::_exit(3);
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  file = std::string(words[2]) + "/file";
  const std::string other = std::string(words[2]) + "/other";
  struct stat info {};
  const int writable = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  int ends[2];
  if (writable < 0 || ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return 2;
  const std::map<std::string, std::function<void()>> calls{
      {"open", open_file},
      {"rename", [&] { std::rename(file.c_str(), other.c_str()); }},
      {"unlink", [&] { ::unlink(file.c_str()); }},
      {"mkdir", [&] { ::mkdir(other.c_str(), 0700); }},
      {"stat", [&] { ::stat(file.c_str(), &info); }},
      {"fsync", [&] { ::fsync(writable); }},
      {"wait", [] { wait_for_children(0); }},
      {"sleep", [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }},
      {"write", [&] { write_to(writable); }},
      {"lookup", [] { look_up("localhost", 0); }},
      {"wait-nohang", [] { wait_for_children(WNOHANG); }},
      {"unblocking",
       [] {
         const Unblocking known("a test");
         open_file();
       }},
      {"thread", [] { on_another_thread(open_file); }},
      {"child", in_a_child},
      {"write-pipe", [&] { write_to(ends[1]); }},
      {"lookup-number", [] { look_up("127.0.0.1", AI_NUMERICHOST); }},
  };
  if (std::string(words[1]) == "unmarked") {
    { const LoopMark mark; }
    open_file();
  } else {
    const LoopMark mark;
    calls.at(words[1])();
  }
  return std::puts("made") < 0 ? 2 : 0;
}
