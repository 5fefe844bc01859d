#include "common/faults/fault_report_text.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/text.hpp"

namespace cpprun::faults {
namespace {

using nlohmann::ordered_json;

bool is_held(const ExpectationResult& result) { return result.is_held; }

// XML 1.0 cannot represent most control characters, even escaped.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return out;
}

std::string shown_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

std::string title(const FaultReport& report) {
  return report.plan().name + ", seed " + std::to_string(report.plan().seed);
}

template <class Number>
void put(ordered_json& object, const char* key, const std::optional<Number>& value) {
  if (value) object[key] = *value;
}

template <class Number>
void take(const ordered_json& object, const char* key, std::optional<Number>& into) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number()) into = found->get<Number>();
}

}  // namespace

std::string report_text(const FaultReport& report, const std::vector<ExpectationResult>& results) {
  std::string out = "cpprun: faults of " + title(report) + "\n";
  for (const ExpectationResult& result : results) {
    out += std::string(result.is_held ? "  ok      " : "  NOT OK  ") + result.name + ": " +
           result.text + "\n";
  }
  const auto held = std::count_if(results.begin(), results.end(), is_held);
  const auto failed = static_cast<int64_t>(results.size()) - held;
  return out + "cpprun: " + std::to_string(held) + " held, " + std::to_string(failed) +
         " did not\n";
}

std::string junit(const FaultReport& report, const std::vector<ExpectationResult>& results,
                  double seconds) {
  const auto held = std::count_if(results.begin(), results.end(), is_held);
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"";
  out += escaped(title(report)) + "\" tests=\"" + std::to_string(results.size()) +
         "\" failures=\"" + std::to_string(static_cast<int64_t>(results.size()) - held) +
         "\" errors=\"0\" skipped=\"0\" time=\"" + shown_seconds(seconds) + "\">\n";
  for (const ExpectationResult& result : results) {
    out += "    <testcase classname=\"cpprun.faults\" name=\"" + escaped(result.name) +
           "\" time=\"" + shown_seconds(result.seconds) + "\">";
    const std::string text = escaped(result.text);
    out += result.is_held ? "<system-out>" + text + "</system-out>"
                          : "<failure message=\"" + text + "\"/>";
    out += "</testcase>\n";
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

Summary summarize(const FaultReport& report, const std::vector<ExpectationResult>& results,
                  const std::string& hash) {
  Summary summary;
  summary.hash = hash;
  summary.is_held = std::all_of(results.begin(), results.end(), is_held);
  for (const InjectedFault& injected : report.injections()) {
    Summary::OneInjection one{name_of(report.plan().faults[injected.fault].what), std::nullopt,
                              injected.lost_steps, injected.lost_epochs};
    if (injected.recovery) one.recovery_s = to_seconds(*injected.recovery);
    summary.injections.push_back(std::move(one));
  }
  for (const ExpectationResult& result : results) {
    if (!result.is_held) summary.failed.push_back(result.name + ": " + result.text);
  }
  return summary;
}

std::string encode(const Summary& summary) {
  ordered_json object = {{"held", summary.is_held}, {"hash", summary.hash}};
  object["injected"] = ordered_json::array();
  for (const Summary::OneInjection& injected : summary.injections) {
    ordered_json one = {{"do", injected.what}};
    put(one, "recovery_s", injected.recovery_s);
    put(one, "lost_steps", injected.lost_steps);
    put(one, "lost_epochs", injected.lost_epochs);
    object["injected"].push_back(std::move(one));
  }
  object["failed"] = summary.failed;
  return dump_json(object, 2) + "\n";
}

Result<Summary> parse_summary(std::string_view json) {
  const ordered_json object = ordered_json::parse(json, nullptr, false);
  const Error bad{ErrorKind::BadValue, "the summary of the run is not in the format of cpprun"};
  if (!object.is_object() || !object.contains("held") || !object["held"].is_boolean()) return bad;
  Summary summary;
  summary.is_held = object["held"].get<bool>();
  summary.hash = object.value("hash", ordered_json("")).is_string() ? object.value("hash", "") : "";
  for (const ordered_json& one : object.value("injected", ordered_json::array())) {
    if (!one.is_object() || !one.contains("do") || !one["do"].is_string()) return bad;
    Summary::OneInjection injected{one["do"].get<std::string>(), {}, {}, {}};
    take(one, "recovery_s", injected.recovery_s);
    take(one, "lost_steps", injected.lost_steps);
    take(one, "lost_epochs", injected.lost_epochs);
    summary.injections.push_back(std::move(injected));
  }
  for (const ordered_json& text : object.value("failed", ordered_json::array())) {
    if (text.is_string()) summary.failed.push_back(text.get<std::string>());
  }
  return summary;
}

}  // namespace cpprun::faults
