#include "cpprun/worker/internal/stack_trace.hpp"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "common/machine/unique_fd.hpp"
#include "cpprun/worker/internal/elf_symbols.hpp"

namespace cpprun::worker {
namespace {

constexpr int kFramesMax = 128;
constexpr size_t kMapsBytes = 512 * 1024;  // a program with LibTorch and CUDA needs 100 KiB
constexpr size_t kPathBytes = 4096;
constexpr size_t kNameBytes = 512;
constexpr size_t kTextBytes = 32 * 1024;

int stack_file = -1;  // set before the handler that uses it is installed
// Used by reports only.
char maps_memory[kMapsBytes];
char path_memory[kPathBytes];
char name_memory[kNameBytes];
char text_memory[kTextBytes];

std::string_view read_maps() {
  const UniqueFd file(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  size_t used = 0;
  while (used < kMapsBytes) {
    const ssize_t count = ::read(file.get(), maps_memory + used, kMapsBytes - used);
    if (count <= 0) break;
    used += static_cast<size_t>(count);
  }
  return {maps_memory, used};
}

// A file mapped for reading.
class Mapping {
 public:
  explicit Mapping(const char* path) noexcept {
    const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || status.st_size <= 0) return;
    const auto size = static_cast<size_t>(status.st_size);
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (at != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(at), size};
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

const char* terminated(std::string_view path) {
  const size_t size = std::min(path.size(), kPathBytes - 1);
  std::memcpy(path_memory, path.data(), size);
  path_memory[size] = 0;
  return path_memory;
}

void put_place(FixedText& to, std::string_view maps, uintptr_t address) {
  const std::optional<Module> module = find_module(maps, address);
  if (!module) {
    to.put("? at ").put_hex(address);
    return;
  }
  const Mapping file(terminated(module->path));
  const ElfPlace place = elf_place(file.bytes(), module->offset);
  to.put(place.function.empty() ? "?" : readable_name(place.function, name_memory));
  to.put(" at ").put(module->path).put("+").put_hex(place.address);
}

// Writes frames one by one and merges repeated frames (recursion) into one line.
class Frames {
 public:
  explicit Frames(FixedText& to) : to_(to), maps_(read_maps()) {}

  // A return address points behind its call, possibly into the next function.
  void put_call(uintptr_t return_address) { put(return_address - 1); }

  void put(uintptr_t address) {
    ++number_;
    if (address == last_) {
      ++repeated_;
      return;
    }
    end_run();
    last_ = address;
    to_.put("  #").put_number(number_ - 1).put(" ");
    put_place(to_, maps_, address);
    to_.put("\n");
  }

  void end_run() {
    if (repeated_ > 0) to_.put("  (").put_number(repeated_).put(" more of this)\n");
    repeated_ = 0;
  }

 private:
  FixedText& to_;
  std::string_view maps_;
  uint64_t number_ = 0;
  uint64_t repeated_ = 0;
  uintptr_t last_ = UINTPTR_MAX;
};

uint64_t take_hex(std::string_view& text, size_t skip_after) {
  uint64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number, 16).ptr;
  text.remove_prefix(std::min(text.size(), static_cast<size_t>(end - text.data()) + skip_after));
  return number;
}

void write_stack(int, siginfo_t*, void* context) {
  const int error = errno;
  FixedText text(text_memory, sizeof text_memory);
  const Interrupted place = interrupted_at(context);
  put_stack_trace(text, &place);
  [[maybe_unused]] const ssize_t written =
      ::write(stack_file, text.view().data(), text.view().size());
  errno = error;
}

}  // namespace

void prepare_stack_trace() {
  void* frame = nullptr;
  ::backtrace(&frame, 1);
}

std::optional<Module> find_module(std::string_view maps, uint64_t address) noexcept {
  while (!maps.empty()) {
    std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(maps.size(), line.size() + 1));
    const uint64_t begin = take_hex(line, 1);
    const uint64_t end = take_hex(line, sizeof " r-xp " - 1);
    const uint64_t offset = take_hex(line, 1);
    if (address < begin || address >= end) continue;
    const size_t path = line.find('/', line.find(' '));  // after "08:01 ", the device
    if (path == std::string_view::npos) return std::nullopt;
    return Module{line.substr(path), address - begin + offset};
  }
  return std::nullopt;
}

Interrupted interrupted_at(const void* context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto counter = static_cast<uintptr_t>(machine.gregs[REG_RIP]);
  return {counter, reinterpret_cast<const uintptr_t*>(machine.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {static_cast<uintptr_t>(machine.pc),
          reinterpret_cast<const uintptr_t*>(&machine.regs[30])};
#else
#error "add the place of this machine's program counter here"
#endif
}

void put_stack_trace(FixedText& to, const Interrupted* interrupted) noexcept {
  static std::array<void*, kFramesMax> addresses;
  const auto count = static_cast<size_t>(::backtrace(addresses.data(), kFramesMax));
  const auto address = [&](size_t i) { return reinterpret_cast<uintptr_t>(addresses[i]); };
  Frames frames(to);
  size_t next = 1;  // skips this function
  if (interrupted != nullptr) {
    while (next < count && address(next) != interrupted->program_counter) ++next;
    ++next;
    frames.put(interrupted->program_counter);
    // The walk ends at a jump to an invalid address; the return address is then the only known
    // caller.
    if (next > count) frames.put_call(*interrupted->return_address);
  }
  for (; next < count; ++next) frames.put_call(address(next));
  frames.end_run();
}

void publish_stack_file(WorkerPage& page) {
  struct sigaction present {};
  if (::sigaction(kStackSignal, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) return;
  stack_file = ::memfd_create("cpprun-stack", MFD_CLOEXEC);
  if (stack_file < 0) return;
  prepare_stack_trace();
  struct sigaction action {};
  action.sa_sigaction = write_stack;
  action.sa_flags = SA_SIGINFO | SA_RESTART;  // system calls of libraries may not handle EINTR
  ::sigaction(kStackSignal, &action, nullptr);
  page.stack_file.store(static_cast<uint32_t>(stack_file) + 1, std::memory_order_release);
}

}  // namespace cpprun::worker
