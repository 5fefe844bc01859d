#include "cpprun/worker/error_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "common/machine/unique_fd.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/internal/error_json.hpp"

namespace cpprun::worker {
namespace {

constexpr size_t kPathBytes = 4096;
constexpr mode_t kMode = 0644;

// Prepared in advance, so that a signal handler only has to write.
struct Prepared {
  char path[kPathBytes];
  char written_path[kPathBytes + 32];  // renamed to `path` when complete
  pid_t pid;
  char json[kErrorJsonBytes];
};

Prepared prepared_reports[2];  // the current one, and one in which a change is prepared
std::atomic<Prepared*> current_report{nullptr};
std::atomic<bool> is_claimed{false};
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<Prepared*>::is_always_lock_free);

void prepare_report(Prepared& prepared, const std::string& path) {
  prepared.pid = ::getpid();
  const bool fits = path.size() < kPathBytes;
  ::snprintf(prepared.path, sizeof prepared.path, "%s", fits ? path.c_str() : "");
  ::snprintf(prepared.written_path, sizeof prepared.written_path, "%s.%d.part", prepared.path,
             static_cast<int>(prepared.pid));
  current_report.store(&prepared, std::memory_order_release);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    text.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

bool write_part(const Prepared& prepared, std::string_view content) {
  const UniqueFd file(
      ::open(prepared.written_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
  return file.is_open() && write_all(file.get(), content);
}

bool write_file(const Prepared& prepared, std::string_view content) {
  if (write_part(prepared, content) && ::rename(prepared.written_path, prepared.path) == 0)
    return true;
  const int reason = errno;
  ::unlink(prepared.written_path);
  errno = reason;
  return false;
}

}  // namespace

void set_error_file(const std::string& path) {
  static std::once_flag once;
  std::call_once(once, [&] {
    if (current_report.load(std::memory_order_acquire) == nullptr)
      prepare_report(prepared_reports[0], path);
  });
}

void change_error_file(const std::string& path) {
  const bool is_second = current_report.load(std::memory_order_acquire) == &prepared_reports[1];
  prepare_report(prepared_reports[is_second ? 0 : 1], path);
  is_claimed.store(false);
}

const char* error_file() noexcept {
  const Prepared* prepared = current_report.load(std::memory_order_acquire);
  return prepared != nullptr ? prepared->path : "";
}

Reported write_error_file(const ErrorText& text) noexcept {
  Prepared* prepared = current_report.load(std::memory_order_acquire);
  if (prepared == nullptr || prepared->path[0] == 0) return Reported::NoFile;
  if (prepared->pid != ::getpid() || is_claimed.exchange(true)) return Reported::NotTheFirst;
  FixedText json(prepared->json, sizeof prepared->json);
  put_error_json(json, text, static_cast<uint64_t>(::time(nullptr)));
  return write_file(*prepared, json.view()) ? Reported::Written : Reported::Failed;
}

Reported report_error(std::string_view message) {
  set_error_file(environment_or_default().error_file);
  return write_error_file({.message = message, .is_consequence = is_peer_loss(message)});
}

bool is_peer_loss(std::string_view text) noexcept {
  constexpr std::string_view kTexts[] = {
      "Connection reset by peer",       "Connection closed by peer", "Broken pipe",
      "Connection was likely closed",   "remote process has exited", "remote process exited",
      "Did the remote server shutdown",
  };
  return std::any_of(std::begin(kTexts), std::end(kTexts), [&](std::string_view known) {
    return text.find(known) != std::string_view::npos;
  });
}

}  // namespace cpprun::worker
