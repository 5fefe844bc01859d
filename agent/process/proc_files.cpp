#include "agent/process/proc_files.hpp"

#include <fcntl.h>

#include <charconv>

#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"
#include "common/thread/loop_mark.hpp"

namespace cpprun {
namespace {

std::optional<int> to_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void append_pids(std::string_view text, std::vector<int>& pids) {
  for (const std::string& word : text::split(text, ' ')) {
    if (const auto pid = to_int(word)) pids.push_back(*pid);
  }
}

// For kernels without CONFIG_PROC_CHILDREN. Not those in this process's own session: workers and
// what they leave behind have others, and a child that has no session yet is about to be one.
std::vector<int> children_by_scan() {
  std::vector<int> pids;
  UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!proc.is_open()) return pids;
  const int session = ::getsid(0);
  for_each_entry(proc.get(), [&](const char* name, bool) {
    const std::optional<int> pid = to_int(name);
    if (!pid) return;
    const std::optional<ProcessStat> stat = read_stat(*pid);
    if (stat && stat->parent == ::getpid() && stat->session != session) pids.push_back(*pid);
  });
  return pids;
}

}  // namespace

std::string proc_path(int pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

std::string_view value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with(name)) return text::strip(line.substr(name.size()));
  }
  return {};
}

std::optional<ProcessStat> parse_stat(std::string_view text) {
  const size_t name_end = text.rfind(") ");  // the name may hold any byte
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> words = text::split(text.substr(name_end + 2), ' ');
  if (words.size() < 4 || words[0].size() != 1) return std::nullopt;
  const auto parent = to_int(words[1]), group = to_int(words[2]), session = to_int(words[3]);
  if (!parent || !group || !session) return std::nullopt;
  return ProcessStat{words[0][0], *parent, *group, *session};
}

std::optional<ProcessStat> read_stat(int pid) {
  return parse_stat(read_small_file(proc_path(pid, "stat")));
}

std::optional<int64_t> resident_bytes(int pid) {
  const Unblocking counters("`statm` takes no lock of the process's memory");
  // The first number is the size of the address space.
  const auto words = text::split(read_small_file(proc_path(pid, "statm")), ' ');
  const auto pages = words.size() > 1 ? text::parse_int(words[1]) : std::nullopt;
  return pages ? std::optional(*pages * ::sysconf(_SC_PAGESIZE)) : std::nullopt;
}

std::optional<int64_t> shared_memory(int pid) {
  const std::string rollup = read_small_file(proc_path(pid, "smaps_rollup"));
  const auto kibibytes = [&rollup](std::string_view name) -> std::optional<int64_t> {
    for (const std::string& line : text::split(rollup, '\n')) {
      if (!line.starts_with(name)) continue;
      const size_t begin = line.find_first_of("0123456789");
      const size_t end = line.find(' ', begin);
      if (begin == std::string::npos) return std::nullopt;
      return text::parse_int(line.substr(begin, end - begin));
    }
    return std::nullopt;
  };
  const auto rss = kibibytes("Rss:"), pss = kibibytes("Pss:");
  constexpr int64_t kKibibyte = 1024;
  return rss && pss ? std::optional((*rss - *pss) * kKibibyte) : std::nullopt;
}

std::vector<int> own_children() {
  // The kernel gives orphans to the process's first live thread, which is the leader. A spawned
  // child belongs to the thread that spawned it.
  std::vector<int> pids;
  const int leader = ::getpid();
  const int caller = static_cast<int>(::syscall(SYS_gettid));
  const std::string tasks = "/proc/self/task/";
  const std::string of_leader = tasks + std::to_string(leader) + "/children";
  if (::access(of_leader.c_str(), R_OK) != 0) return children_by_scan();
  append_pids(read_small_file(of_leader), pids);
  if (caller != leader) {
    append_pids(read_small_file(tasks + std::to_string(caller) + "/children"), pids);
  }
  return pids;
}

std::optional<std::string_view> find_variable(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    const std::string_view entry = environment.substr(0, end);
    if (const auto value = text::value_of(entry, name)) return value;
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return std::nullopt;
}

bool carries_token(std::string_view environment, std::string_view token) {
  std::string_view chain = find_variable(environment, "CPPRUN_TOKEN").value_or("");
  while (!chain.empty()) {
    const size_t end = std::min(chain.find('.'), chain.size());
    if (chain.substr(0, end) == token) return true;
    chain.remove_prefix(std::min(end + 1, chain.size()));
  }
  return false;
}

Origin parse_origin(std::string_view environment, std::string_view token) {
  Origin origin;
  origin.is_ours = carries_token(environment, token);
  const std::string_view chain = find_variable(environment, "CPPRUN_TOKEN").value_or("");
  const size_t last = chain.rfind('.');
  origin.is_nested =
      origin.is_ours && chain.substr(last == std::string_view::npos ? 0 : last + 1) != token;
  if (const auto rank = find_variable(environment, "LOCAL_RANK")) origin.local_rank = to_int(*rank);
  return origin;
}

}  // namespace cpprun
