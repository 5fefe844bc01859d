#include "common/failure/error_location.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "common/failure/exception_text.hpp"
#include "common/failure/failure_class.hpp"
#include "common/failure/fault_dump.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

struct Frame {
  std::string text;  // "train.py:4 in load"
  bool is_installed = false;
};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A line such as `  File "/data/train.py", line 4, in load`. A fault dump has no second comma.
std::optional<Frame> frame_of(std::string_view line) {
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kIn = " in ";
  line = text::strip(line);
  const size_t middle = line.rfind(kLine);
  if (!line.starts_with(kFile) || middle == std::string_view::npos) return std::nullopt;
  const std::string_view path = line.substr(kFile.size(), middle - kFile.size());
  const std::string_view rest = line.substr(middle + kLine.size());
  const size_t in = rest.find(kIn);
  std::string_view number = rest.substr(0, in);
  if (number.ends_with(',')) number.remove_suffix(1);
  if (!is_number(number)) return std::nullopt;
  Frame frame;
  frame.text = std::string(path.substr(path.rfind('/') + 1)) + ":" + std::string(number);
  if (in != std::string_view::npos)
    frame.text += " in " + std::string(rest.substr(in + kIn.size()));
  frame.is_installed = path.find("/site-packages/") != std::string_view::npos ||
                       path.find("/dist-packages/") != std::string_view::npos ||
                       path.find("/lib/python") != std::string_view::npos ||
                       path.find("/cpprun_worker/") != std::string_view::npos ||
                       path.starts_with('<');
  return frame;
}

}  // namespace

// The deepest frame comes first.
std::string failed_thread_location(const std::vector<std::string>& lines) {
  std::optional<Frame> found;
  auto line = std::ranges::find_if(lines, is_failed_thread);
  for (; line != lines.end(); ++line) {
    std::optional<Frame> frame = frame_of(*line);
    const bool is_better = frame && (!found || (found->is_installed && !frame->is_installed));
    if (is_better) found = std::move(frame);
  }
  return found ? found->text : "";
}

std::string error_location(const std::vector<std::string>& lines) {
  if (find_fault_dump(lines)) return failed_thread_location(lines);
  std::optional<Frame> found;
  for (const std::string& raw : lines) {
    const std::string_view line = plain_line(raw);
    // A progress bar may be on the same line.
    if (line.ends_with("Traceback (most recent call last):")) found.reset();
    std::optional<Frame> frame = frame_of(line);
    const bool is_better = frame && (!found || found->is_installed || !frame->is_installed);
    if (is_better) found = std::move(frame);
  }
  return found ? found->text : "";
}

std::string error_location(const WorkerExit& end) {
  if (end.error && !end.error->traceback.empty()) {
    const std::string place = error_location(text::split(end.error->traceback, '\n'));
    if (!place.empty()) return place;
  }
  // A traceback before a signal is of an exception that the program has handled.
  const bool is_of_end = find_fault_dump(end.last_lines) || !error_text(end).empty();
  return is_of_end ? error_location(end.last_lines) : "";
}

}  // namespace cpprun
