// What /proc tells about processes: small files, children, sessions, and whose environment carries
// a token.
//
// Functions that the reaper process uses after a fork allocate nothing. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

// Whole text of a file, "" if it cannot be read.
std::string read_small_file(const std::string& path);

// The environment of a process as the kernel shows it (NAME=value, each ended by 0); "" if it has
// ended or is not ours to read.
std::string read_environment(int pid);

// Calls `visit(name, is_folder)` for each entry of an open folder. Allocates nothing.
template <class Visit>
void for_each_entry(int folder, Visit&& visit);

struct ProcessStat {
  char state = '?';  // 'Z' for a zombie
  int parent = 0;
  int group = 0;
  int session = 0;
};
std::optional<ProcessStat> read_stat(int pid);
std::optional<ProcessStat> parse_stat(std::string_view text);

// The memory of a process that is in RAM, shared pages included; nothing if it has ended.
std::optional<int64_t> resident_bytes(int pid);

// Children of this process: those that the calling thread made, and adopted ones.
std::vector<int> own_children();

// What a process's environment says about where it came from.
struct Origin {
  bool is_ours = false;  // our token stands in the chain CPPRUN_TOKEN
  bool is_nested =
      false;  // ... but not as the last one: it belongs to a job inside one of our workers
  std::optional<int> local_rank;  // LOCAL_RANK, meaningful for what is ours and not nested
};
Origin parse_origin(std::string_view environment, std::string_view token);

// Does `token` stand in the chain of tokens ("outer.inner") of this environment? Allocates nothing.
bool carries_token(std::string_view environment, std::string_view token);

// Value of a variable in an environment block, or nothing. Allocates nothing.
std::optional<std::string_view> find_variable(std::string_view environment, std::string_view name);

// Buffer for one call of getdents64: the reaper process's stack has room for it.
inline constexpr size_t kEntryBufferBytes = 16 * 1024;
int64_t read_entries(int folder, char* buffer, size_t size);
struct Entry {
  const char* name;
  bool is_folder;
  size_t length;  // of the whole record
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
