// Reads /proc: small files, children, sessions, and environments that carry a token.
//
// The functions that the reaper process uses after its fork allocate nothing. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/machine/files.hpp"

namespace cpprun {

// The whole text of a file; "": unreadable.
inline std::string read_small_file(const std::string& path) { return read_file(path).value_or(""); }

// The environment of a process: NAME=value entries, each ended by a zero byte; "": it has ended, or
// the kernel denies the access.
std::string read_environment(int pid);

// Calls `visit(name, is_folder)` for each entry of an open folder. Allocates nothing.
template <class Visit>
void for_each_entry(int folder, Visit&& visit);

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

// Buffer for one call of getdents64; fits on the reaper process's stack.
inline constexpr size_t kEntryBufferBytes = 16 * 1024;
int64_t read_entries(int folder, char* buffer, size_t size);
struct Entry {
  const char* name;
  bool is_folder;
  size_t length;  // of the record
};
Entry entry_at(const char* record);

template <class Visit>
void for_each_entry(int folder, Visit&& visit) {
  alignas(8) char buffer[kEntryBufferBytes];
  for (;;) {
    const int64_t size = read_entries(folder, buffer, sizeof buffer);
    if (size <= 0) return;
    for (int64_t at = 0; at < size;) {
      const Entry entry = entry_at(buffer + at);
      visit(entry.name, entry.is_folder);
      at += static_cast<int64_t>(entry.length);
    }
  }
}

}  // namespace cpprun
