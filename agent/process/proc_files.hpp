// Reads /proc: small files, children, sessions, and environments that carry a token.
//
// The functions that the reaper process uses after its fork allocate nothing. Any thread.
#pragma once

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/machine/files.hpp"

namespace cpprun {

// The whole text of a file; "": unreadable.
inline std::string read_small_file(const std::string& path) { return read_file(path).value_or(""); }

// "/proc/<pid>/<name>".
std::string proc_path(int pid, const char* name);

// The value in a line "Name:\tvalue" of a text such as /proc/<pid>/status, for `name` with its
// colon; "": not there.
std::string_view value_of(std::string_view text, std::string_view name);

struct ProcessStat {
  char state = '?';  // 'Z': a zombie
  int parent = 0;
  int group = 0;
  int session = 0;
};
std::optional<ProcessStat> read_stat(int pid);
std::optional<ProcessStat> parse_stat(std::string_view text);

// Resident memory of a process, shared pages included; unset: it has ended.
std::optional<int64_t> resident_bytes(int pid);
// Resident memory that other processes hold too, divided among them: Rss minus Pss. May wait for
// the lock of the process's memory.
std::optional<int64_t> shared_memory(int pid);

// Children of this process: those of the calling thread, and adopted ones.
std::vector<int> own_children();

// The origin of a process according to its environment.
struct Origin {
  bool is_ours = false;  // the token is in the chain CPPRUN_TOKEN
  // The token is not the last one: the process belongs to a job inside one of this job's workers.
  bool is_nested = false;
  std::optional<int> local_rank;  // LOCAL_RANK; valid if is_ours and not is_nested
};
Origin parse_origin(std::string_view environment, std::string_view token);

// Whether `token` is in the chain of tokens ("outer.inner") of this environment. Allocates nothing.
bool carries_token(std::string_view environment, std::string_view token);

// The value of a variable in an environment block; unset: not there. Allocates nothing.
std::optional<std::string_view> find_variable(std::string_view environment, std::string_view name);

// Calls `visit(name, is_folder)` for each entry of an open folder. Allocates nothing; the buffer
// fits on the reaper process's stack.
template <class Visit>
void for_each_entry(int folder, Visit&& visit) {
  alignas(dirent64) char buffer[16 * 1024];
  for (;;) {
    const int64_t size = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (size <= 0) return;
    for (int64_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      visit(entry->d_name, entry->d_type == DT_DIR);
    }
  }
}

}  // namespace cpprun
