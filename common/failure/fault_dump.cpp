#include "common/failure/fault_dump.hpp"

#include <algorithm>
#include <array>

#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr std::string_view kError = "Fatal Python error: ";
constexpr std::string_view kCurrentThread = "Current thread ";

// The beginnings of the lines after the error.
constexpr std::array<std::string_view, 8> kBeginnings{kCurrentThread,
                                                      "Thread 0x",
                                                      "  File \"",
                                                      "  <no Python frame>",
                                                      "  ...",
                                                      "Extension modules: ",
                                                      "Python runtime state: ",
                                                      "<Cannot show all threads"};

bool is_of_dump(std::string_view line) {
  return text::strip(line).empty() || std::ranges::any_of(kBeginnings, [line](auto beginning) {
           return line.starts_with(beginning);
         });
}

// A Python traceback has frames as well, but no such line.
bool is_only_of_dump(std::string_view line) {
  return is_failed_thread(line) || line.starts_with("Extension modules: ");
}

}  // namespace

bool is_failed_thread(std::string_view line) { return line.starts_with(kCurrentThread); }

std::optional<FaultDump> find_fault_dump(const std::vector<std::string>& lines) {
  bool is_certain = false;
  size_t begin = lines.size();
  for (; begin > 0 && is_of_dump(lines[begin - 1]); --begin) {
    is_certain = is_certain || is_only_of_dump(lines[begin - 1]);
  }
  if (begin > 0 && lines[begin - 1].starts_with(kError)) {
    return FaultDump{begin - 1, lines[begin - 1]};
  }
  if (!is_certain) return std::nullopt;
  return FaultDump{begin, ""};
}

}  // namespace cpprun
