// The check that no loop blocks, for programs of the tests: a seccomp filter on each thread with a
// LoopMark refuses system calls that may wait for a file system or a child, and wrappers (linker
// option --wrap) refuse getaddrinfo() and write() to what may not take the bytes at once. The
// program then prints the call and a backtrace, and aborts.
//
// Threads and children that a marked thread starts inherit the filter. They are not marked, so the
// handler of the signal makes the call for them.
#include <execinfo.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/thread/loop_mark.hpp"

namespace cpprun {
namespace {

// As sixth argument of a refused call, none of which has so many: the handler makes the call.
constexpr uint32_t kPass = 0x10c4ec4d;
constexpr int kFrames = 64;

// ---------------------------------------------------------------- the report

void print(const char* text) {
  [[maybe_unused]] const long done = ::syscall(SYS_write, 2, text, ::strlen(text));
}

[[noreturn]] void refuse(const char* what) {
  const Unblocking report("the program ends");
  print("cpprun: loop check: a loop called ");
  print(what);
  print(", which may block:\n");
  void* frames[kFrames];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, kFrames), 2);
  ::abort();
}

[[noreturn]] void refuse_call(long number) {
  char digits[24] = "system call 000";
  size_t at = ::strlen(digits);
  for (long left = number; left > 0 && at > 12; left /= 10) {
    digits[--at] = static_cast<char>('0' + left % 10);
  }
  refuse(digits);
}

// ---------------------------------------------------------------- the filter

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;

long call_again(ucontext_t& context) {
  const greg_t* regs = context.uc_mcontext.gregs;
  const long result = ::syscall(regs[REG_RAX], regs[REG_RDI], regs[REG_RSI], regs[REG_RDX],
                                regs[REG_R10], regs[REG_R8], long{kPass});
  return result < 0 ? -errno : result;
}

void set_result(ucontext_t& context, long result) { context.uc_mcontext.gregs[REG_RAX] = result; }

#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;

long call_again(ucontext_t& context) {
  const auto* regs = context.uc_mcontext.regs;
  const long result = ::syscall(static_cast<long>(regs[8]), regs[0], regs[1], regs[2], regs[3],
                                regs[4], long{kPass});
  return result < 0 ? -errno : result;
}

void set_result(ucontext_t& context, long result) {
  context.uc_mcontext.regs[0] = static_cast<unsigned long long>(result);
}
#endif

constexpr int kRefused[] = {
#ifdef SYS_open
    SYS_open,       SYS_creat,      SYS_rename,    SYS_unlink,         SYS_mkdir,     SYS_rmdir,
    SYS_stat,       SYS_lstat,      SYS_access,    SYS_readlink,       SYS_symlink,   SYS_link,
    SYS_mknod,      SYS_chmod,
#endif
    SYS_openat,     SYS_openat2,    SYS_renameat2, SYS_unlinkat,       SYS_mkdirat,   SYS_faccessat,
    SYS_faccessat2, SYS_readlinkat, SYS_symlinkat, SYS_linkat,         SYS_mknodat,   SYS_fchmodat,
    SYS_chdir,      SYS_truncate,   SYS_statfs,    SYS_fsync,          SYS_fdatasync, SYS_sync,
    SYS_syncfs,     SYS_execve,     SYS_nanosleep, SYS_clock_nanosleep};

// Refused unless this argument has one of these bits.
struct Conditional {
  int number;
  uint32_t argument;
  uint32_t bits;
};

constexpr Conditional kConditional[] = {{SYS_wait4, 2, WNOHANG},
                                        {SYS_waitid, 3, WNOHANG},
                                        {SYS_newfstatat, 3, AT_EMPTY_PATH},
                                        {SYS_statx, 2, AT_EMPTY_PATH}};

constexpr uint32_t offset_of(uint32_t argument) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + argument * 8;  // its low half
}

std::vector<sock_filter> filter() {
  const auto statement = [](uint32_t code, uint32_t k) {
    return sock_filter{static_cast<uint16_t>(code), 0, 0, k};
  };
  const auto jump = [](uint32_t code, uint32_t k, uint8_t yes, uint8_t no) {
    return sock_filter{static_cast<uint16_t>(code), yes, no, k};
  };
  const auto load = [&](uint32_t at) { return statement(BPF_LD | BPF_W | BPF_ABS, at); };
  const auto allow = statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const auto trap = statement(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  std::vector<sock_filter> code;
  code.push_back(load(offsetof(seccomp_data, arch)));
  code.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0));
  code.push_back(allow);
  code.push_back(load(offset_of(5)));
  code.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, kPass, 0, 1));
  code.push_back(allow);
  code.push_back(load(offsetof(seccomp_data, nr)));
  for (const int number : kRefused) {
    code.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
    code.push_back(trap);
  }
  for (const Conditional& one : kConditional) {
    code.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(one.number), 0, 4));
    code.push_back(load(offset_of(one.argument)));
    code.push_back(jump(BPF_JMP | BPF_JSET | BPF_K, one.bits, 1, 0));
    code.push_back(trap);
    code.push_back(allow);
  }
  code.push_back(allow);
  return code;
}

void on_trap(int, siginfo_t* info, void* context) {
  const int before = errno;
  auto& registers = *static_cast<ucontext_t*>(context);
  if (LoopMark::is_forbidden()) refuse_call(info->si_syscall);
  set_result(registers, call_again(registers));
  errno = before;
}

void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  if (::sigaction(SIGSYS, &action, nullptr) != 0) ::abort();
  void* frames[kFrames];
  ::backtrace(frames, kFrames);  // loads what it needs, while it may
}

}  // namespace

void refuse_blocking_calls() {
  [[maybe_unused]] static const bool once = (install_handler(), true);
  const std::vector<sock_filter> code = filter();
  sock_fprog program{static_cast<unsigned short>(code.size()),
                     const_cast<sock_filter*>(code.data())};
  const bool is_set = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
  if (is_set) return;
  print("cpprun: loop check: the kernel refuses the filter\n");
  ::abort();
}

}  // namespace cpprun

// ---------------------------------------------------------------- calls of the C library

namespace {

// Whether write() to it may wait for a reader, a terminal or a file system.
bool may_wait(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return false;
  if (S_ISREG(info.st_mode) || S_ISBLK(info.st_mode)) return true;
  if (S_ISCHR(info.st_mode)) return ::isatty(fd) == 1 && (::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
  const bool is_stream = S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode);
  return is_stream && (::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

}  // namespace

extern "C" {

int __real_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**);
ssize_t __real_write(int, const void*, size_t);

int __wrap_getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                       addrinfo** found) {
  if (!cpprun::LoopMark::is_forbidden()) {
    return __real_getaddrinfo(node, service, hints, found);
  }
  addrinfo numeric = hints != nullptr ? *hints : addrinfo{};
  numeric.ai_flags |= AI_NUMERICHOST;
  const cpprun::Unblocking number("no look-up");
  const int error = __real_getaddrinfo(node, service, &numeric, found);
  const bool was_asked = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (error == EAI_NONAME && !was_asked) cpprun::refuse("getaddrinfo()");
  return error;
}

ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
  if (cpprun::LoopMark::is_forbidden() && may_wait(fd)) cpprun::refuse("write()");
  return __real_write(fd, bytes, size);
}

}  // extern "C"
