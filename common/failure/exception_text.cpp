#include "common/failure/exception_text.hpp"

#include <algorithm>
#include <cstddef>

#include "common/text.hpp"

namespace cpprun {
namespace {

// "" without such a prefix.
std::string_view rank_prefix(std::string_view line) {
  constexpr std::string_view kBegin = "[rank";
  constexpr std::string_view kEnd = "]: ";
  if (!line.starts_with(kBegin)) return "";
  const size_t end = line.find_first_not_of("0123456789", kBegin.size());
  const bool is_prefix =
      end != line.npos && end > kBegin.size() && line.substr(end).starts_with(kEnd);
  return is_prefix ? line.substr(0, end + kEnd.size()) : "";
}

// As in "  | ValueError: no" and "  +-+---------------- 1 ----------------".
std::string_view without_bars(std::string_view line) {
  const size_t bar = std::min(line.find_first_not_of(' '), line.size());
  if (bar < 2) return line;
  const std::string_view rest = line.substr(bar);
  if (rest.starts_with("+-")) return "";
  return rest.starts_with("| ") ? rest.substr(2) : line;
}

bool is_frame(const std::string& line) {
  const std::string_view plain = plain_line(line);
  return plain.starts_with("  File \"") && plain.find("\", line ") != plain.npos;
}

// Python prints this, and a traceback, about an exception in a destructor. It continues.
bool is_ignored(const std::string& line) { return line.starts_with("Exception ignored in"); }

// The stack of a c10::Error follows, which LibTorch appends to its message.
bool is_native_stack(std::string_view line) { return line.starts_with("Exception raised from "); }

}  // namespace

bool is_indented(std::string_view line) { return line.starts_with(' ') || line.starts_with('\t'); }

std::string_view plain_line(std::string_view line) {
  return without_bars(line.substr(rank_prefix(line).size()));
}

std::string python_exception(const std::vector<std::string>& lines, bool is_uncaught) {
  constexpr int kMost = 8;  // further lines that may belong to the message
  const auto first = std::ranges::find_if(lines, is_frame);
  const auto end = std::find_if(first, lines.end(), is_ignored);
  auto line = std::find_if(std::make_reverse_iterator(end), lines.rend(), is_frame).base();
  const bool has_rank = line != lines.begin() && !rank_prefix(*std::prev(line)).empty();
  if (line == lines.begin() || (!has_rank && !is_uncaught)) return "";
  std::string error;
  for (int further = 0; line != end; ++line) {
    const std::string_view plain = plain_line(*line);
    const std::string stripped(text::strip(plain));
    const bool is_code = error.empty() && is_indented(plain);
    if (stripped.empty() || is_code) continue;
    if (is_native_stack(plain) || (has_rank && rank_prefix(*line).empty())) break;
    if (!has_rank && !error.empty() && !is_indented(plain) && ++further > kMost) return "";
    error += (error.empty() ? "" : "\n") + stripped;
  }
  return error;
}

std::string cpp_exception(const std::vector<std::string>& lines) {
  constexpr std::string_view kWhat = "  what():  ";
  constexpr std::string_view kThrown = "terminate called after throwing an instance of '";
  const auto what = std::find_if(lines.rbegin(), lines.rend(),
                                 [&](const std::string& line) { return line.starts_with(kWhat); });
  if (what == lines.rend()) return "";
  std::string error;
  if (const auto thrown = std::next(what); thrown != lines.rend() && thrown->starts_with(kThrown))
    error = thrown->substr(kThrown.size(), thrown->size() - kThrown.size() - 1) + ": ";
  error += what->substr(kWhat.size());
  for (auto line = what.base(); line != lines.end(); ++line) {
    if (is_native_stack(*line) || line->starts_with("Fatal Python error: ")) break;
    if (const std::string_view more = text::strip(*line); !more.empty())
      error += "\n" + std::string(more);
  }
  return error;
}

}  // namespace cpprun
