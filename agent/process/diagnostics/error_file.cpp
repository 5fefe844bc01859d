#include "agent/process/diagnostics/error_file.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/limits/agent.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

using nlohmann::json;

// Three levels have a meaning; deeper nesting would only make code that walks the tree recurse.
constexpr int kErrorFileDepth = 32;
constexpr double kLatestSecond = 1e11;  // a timestamp beyond the year 5000 is invalid

std::optional<WallTime> to_stamp(const json& value) {
  std::optional<double> number;
  if (value.is_number()) number = value.get<double>();
  if (value.is_string()) number = text::parse_double(value.get_ref<const std::string&>());
  if (!number || !std::isfinite(*number) || *number < 0 || *number > kLatestSecond)
    return std::nullopt;
  return WallTime{static_cast<int64_t>(*number * 1e6)};
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  return dump_json(*found);
}

// The nested form; the plain one is a single string.
void read_nested(const json& message, ErrorReport& report) {
  report.message = text_of(message, "message");
  const auto extra = message.find("extraInfo");
  if (extra == message.end() || !extra->is_object()) return;
  report.traceback = text_of(*extra, "py_callstack");
  const auto stamp = extra->find("timestamp");
  if (stamp != extra->end()) report.stamp = to_stamp(*stamp);
  report.is_consequence = text_of(*extra, "consequence_of") == "peer";
}

}  // namespace

ErrorReport unreadable_error_file(const std::string& path, const std::string& reason) {
  ErrorReport report;
  report.path = path;
  report.is_readable = false;
  report.message = "the error file could not be read: " + reason;
  return report;
}

ErrorReport parse_error_file(const std::string& path, std::string_view bytes) {
  if (bytes.empty()) return unreadable_error_file(path, "it is empty");
  if (bytes.size() > limits::kErrorFileBytes) {
    return unreadable_error_file(
        path, "it is larger than " + std::to_string(limits::kErrorFileBytes) + " bytes");
  }
  const json root = parse_json<json>(bytes, kErrorFileDepth);
  if (root.is_discarded())
    return unreadable_error_file(path, "it is no valid JSON, or is nested too deeply");
  if (!root.is_object() || !root.contains("message"))
    return unreadable_error_file(path, "it has no \"message\"");
  ErrorReport report;
  report.path = path;
  const json& message = root["message"];
  if (message.is_object()) {
    read_nested(message, report);
  } else {
    report.message = text_of(root, "message");
    if (root.contains("timestamp")) report.stamp = to_stamp(root["timestamp"]);
  }
  return report;
}

}  // namespace cpprun
