#include "agent/core/hangs/hang_stacks.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/text.hpp"

namespace cpprun::agent {
namespace {

constexpr size_t kShownGroups = 8;
constexpr size_t kShownFrames = 8;
constexpr size_t kNamedRanks = 16;
constexpr size_t kFunctionBytes = 120;  // of a C++ function, which may have long template arguments
// The kernel's functions in which a thread waits for another one of its process: futex_wait_queue,
// futex_do_wait. In a collective of Gloo or NCCL the main thread waits for the backend's threads.
constexpr std::string_view kFutex = "futex_";
constexpr std::string_view kKernel = "kernel: waits in ";
constexpr const char* kSomeCollective = "a collective";

// Parts of C++ functions, in clear and mangled.
constexpr std::array<std::string_view, 8> kWaitsInCpp{
    "c10d::",    "N4c10d",      "gloo::", "N4gloo", "cudaStreamSynchronize", "cuStreamSynchronize",
    "cuCtxSync", "ncclGroupEnd"};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// ---------------------------------------------------------------- reading

std::string_view before(std::string_view text, std::string_view mark) {
  return text.substr(0, text.find(mark));
}

// `File "/x/train.py", line 12 in step`
std::optional<StackFrame> faulthandler_frame(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = " in ";
  const size_t number = line.find(kLine);
  if (!line.starts_with(kFile) || number == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(number + kLine.size());
  const size_t in = rest.find(kIn);
  if (in == std::string_view::npos) return std::nullopt;
  return StackFrame{std::string(rest.substr(in + kIn.size())),
                    std::string(line.substr(kFile.size(), number - kFile.size())),
                    std::string(rest.substr(0, in))};
}

// `step (train.py:12)`
std::optional<StackFrame> py_spy_frame(std::string_view line) {
  const size_t open = line.rfind(" (");
  const size_t colon = line.rfind(':');
  if (!line.ends_with(')') || open == std::string_view::npos || colon == std::string_view::npos ||
      colon < open) {
    return std::nullopt;
  }
  const std::string number(line.substr(colon + 1, line.size() - colon - 2));
  if (!text::parse_int(number)) return std::nullopt;
  return StackFrame{std::string(line.substr(0, open)),
                    std::string(line.substr(open + 2, colon - open - 2)), number};
}

// `#1  0x00007f in c10d::Work::wait (this=0x1) at w.cpp:4`, `#1 c10d::Work::wait+0x1 at lib.so+0x2`
std::optional<StackFrame> numbered_frame(std::string_view line) {
  if (!line.starts_with('#') || !has(line, " ")) return std::nullopt;
  std::string_view function = text::strip(line.substr(line.find(' ')));
  if (function.starts_with("0x") && has(function, " in ")) {
    function = function.substr(function.find(" in ") + 4);
  }
  function = before(before(before(function, " ("), " at "), "+0x");
  return StackFrame{std::string(function), "", ""};
}

bool is_thread(std::string_view line) {
  return line.starts_with("Thread ") || line.starts_with("Current thread ");
}

bool is_main_thread(std::string_view line) {
  return line.starts_with("Current thread ") || line.ends_with("\"MainThread\"") ||
         line.starts_with("Thread 1 (");
}

// ---------------------------------------------------------------- places

// Whether `file` is below `folder` of a torch installation.
bool is_in_torch(std::string_view file, std::string_view folder) {
  const size_t at = file.rfind("torch/" + std::string(folder));
  return at != std::string_view::npos && (at == 0 || file[at - 1] == '/');
}

bool waits_in_python(const StackFrame& frame) {
  const std::string& file = frame.file;
  const bool is_launcher =
      is_in_torch(file, "distributed/elastic/") || is_in_torch(file, "distributed/run.py");
  if (is_in_torch(file, "distributed/")) return !is_launcher;
  if (is_in_torch(file, "cuda/")) return frame.function.ends_with("synchronize");
  // The calls into DDP's reducer have no frame of their own.
  return is_in_torch(file, "nn/parallel/distributed.py") ||
         (is_in_torch(file, "autograd/") && frame.function == "_engine_run_backward");
}

bool waits_in_cpp(const StackFrame& frame) {
  return std::ranges::any_of(kWaitsInCpp,
                             [&](std::string_view part) { return has(frame.function, part); });
}

std::string frame_text(const StackFrame& frame) {
  const std::string function = text::cut(frame.function, kFunctionBytes);
  if (frame.file.empty()) return function;
  const std::string name = frame.file.substr(frame.file.rfind('/') + 1);
  return function + " (" + name + ":" + frame.line + ")";
}

// ---------------------------------------------------------------- the comparison

using Collectives = std::vector<std::optional<std::string>>;  // by worker

// "barrier", "collectives"; not of worker `but`.
std::string waits_text(const Collectives& collectives, size_t but) {
  std::string text;
  for (size_t i = 0; i < collectives.size(); ++i) {
    if (i == but || !collectives[i]) continue;
    if (!text.empty() && text != *collectives[i]) return "collectives";
    text = *collectives[i];
  }
  return text;
}

// The only worker that waits in the kernel for something else than a thread of its own.
StackComparison compare_kernel_waits(const std::vector<RankStack>& workers) {
  std::optional<size_t> odd;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (workers[i].waits_in.starts_with(kFutex)) continue;
    if (odd || workers[i].waits_in.empty()) return {};
    odd = i;
  }
  if (!odd || workers.size() == 1) return {};
  return {odd, "it waits in " + workers[*odd].waits_in +
                   " in the kernel, the others for threads of their own, as in a collective"};
}

// All wait in collectives; at best, one of them in another than the rest.
StackComparison compare_collectives(const Collectives& collectives) {
  const std::string all = waits_text(collectives, collectives.size());
  if (all != "collectives") return {std::nullopt, "all workers of this node wait in " + all};
  constexpr size_t kLeast = 3;  // of two workers, either may be the wrong one
  for (size_t i = 0; collectives.size() >= kLeast && i < collectives.size(); ++i) {
    const std::string rest = waits_text(collectives, i);
    if (rest != "collectives") {
      return {i, "it waits in " + *collectives[i] + ", the others in " + rest};
    }
  }
  return {std::nullopt, "the workers of this node wait in different collectives"};
}

std::string chosen_text(const std::vector<RankStack>& workers, const std::vector<size_t>& chosen) {
  std::vector<int64_t> ranks;
  for (const size_t i : chosen) ranks.push_back(workers[i].rank.value);
  return ranks_text(ranks, kNamedRanks);
}

}  // namespace

std::string ranks_text(const std::vector<int64_t>& ranks, size_t most) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(most, ranks.size()); ++i)
    names.push_back(std::to_string(ranks[i]));
  const std::string more =
      ranks.size() > most ? " and " + std::to_string(ranks.size() - most) + " more" : "";
  return (ranks.size() == 1 ? "rank " : "ranks ") + text::join(names, ", ") + more;
}

Stack main_stack(std::string_view text) {
  Stack found;
  bool is_main = false;
  for (const std::string& whole : text::split(text, '\n')) {
    const std::string_view line = text::strip(whole);
    if (line.starts_with("kernel: ")) break;
    if (is_thread(line)) {
      if (is_main) break;
      is_main = is_main_thread(line);
      found.clear();  // without a main thread the last one counts
      continue;
    }
    std::optional<StackFrame> frame = faulthandler_frame(line);
    if (!frame) frame = numbered_frame(line);
    if (!frame) frame = py_spy_frame(line);
    if (frame) found.push_back(std::move(*frame));
  }
  return found;
}

std::string waits_in(std::string_view text) {
  const size_t at = text.find(kKernel);
  if (at == std::string_view::npos) return "";
  const std::string_view name = before(before(text.substr(at + kKernel.size()), "\n"), " ");
  return name == "nothing" ? "" : std::string(name);
}

std::optional<std::string> collective_of(const Stack& stack) {
  for (const StackFrame& frame : stack) {
    if (frame.is_python()) {
      if (is_in_torch(frame.file, "_ops.py")) continue;  // calls an operator for its caller
      if (!waits_in_python(frame)) return std::nullopt;
      return frame.function == "_engine_run_backward" ? "backward" : frame.function;
    }
    if (waits_in_cpp(frame)) return kSomeCollective;
  }
  return std::nullopt;
}

StackComparison compare_stacks(const std::vector<RankStack>& workers) {
  Collectives collectives;
  std::vector<size_t> outside;
  size_t waiting = 0;
  for (size_t i = 0; i < workers.size(); ++i) {
    collectives.push_back(collective_of(workers[i].stack));
    if (collectives.back()) {
      ++waiting;
    } else if (!workers[i].stack.empty()) {
      outside.push_back(i);
    }
  }
  if (waiting > 0 && waiting == workers.size()) return compare_collectives(collectives);
  if (outside.empty() || outside.size() > waiting) return compare_kernel_waits(workers);
  const size_t odd = outside.front();
  std::string why = "it is in " + frame_text(workers[odd].stack.front());
  const std::string collective = waits_text(collectives, odd);
  if (outside.size() == 1) return {odd, why + ", the others wait in " + collective};
  return {odd, why + "; " + chosen_text(workers, outside) +
                   " are in no collective, the others wait in " + collective};
}

std::string grouped_stacks(const std::vector<RankStack>& workers, size_t shown) {
  std::vector<std::vector<size_t>> groups;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (workers[i].stack.empty()) continue;
    const auto same = std::ranges::find_if(groups, [&](const std::vector<size_t>& group) {
      return workers[group.front()].stack == workers[i].stack;
    });
    if (same == groups.end()) {
      groups.push_back({i});
    } else {
      same->push_back(i);
    }
  }
  std::erase(groups, std::vector<size_t>{shown});
  std::string text;
  for (size_t g = 0; g < std::min(kShownGroups, groups.size()); ++g) {
    const Stack& stack = workers[groups[g].front()].stack;
    text += "\n" + chosen_text(workers, groups[g]) + ":";
    for (size_t i = 0; i < std::min(kShownFrames, stack.size()); ++i) {
      text += "\n    " + frame_text(stack[i]);
    }
    if (stack.size() > kShownFrames) text += "\n    ...";
  }
  if (groups.size() > kShownGroups) {
    text += "\n" + text::count(groups.size() - kShownGroups, "more stack");
  }
  return text;
}

}  // namespace cpprun::agent
