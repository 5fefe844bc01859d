#include "common/faults/account_text.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/text.hpp"

namespace cpprun::faults {
namespace {

using nlohmann::ordered_json;

bool is_held(const Verdict& verdict) {
  return verdict.is_held;
}

// XML 1.0 has no way to write most control characters.
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

std::string title(const Account& account) {
  return account.plan().name + ", seed " + std::to_string(account.plan().seed);
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

std::string account_text(const Account& account, const std::vector<Verdict>& verdicts) {
  std::string out = "cpprun: faults of " + title(account) + "\n";
  for (const Verdict& verdict : verdicts) {
    out += std::string(verdict.is_held ? "  ok      " : "  NOT OK  ") + verdict.name + ": " +
           verdict.text + "\n";
  }
  const auto held = std::count_if(verdicts.begin(), verdicts.end(), is_held);
  const auto failed = static_cast<int64_t>(verdicts.size()) - held;
  return out + "cpprun: " + std::to_string(held) + " held, " + std::to_string(failed) +
         " did not\n";
}

std::string junit(const Account& account, const std::vector<Verdict>& verdicts, double seconds) {
  const auto held = std::count_if(verdicts.begin(), verdicts.end(), is_held);
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"";
  out += escaped(title(account)) + "\" tests=\"" + std::to_string(verdicts.size()) +
         "\" failures=\"" + std::to_string(static_cast<int64_t>(verdicts.size()) - held) +
         "\" errors=\"0\" skipped=\"0\" time=\"" + shown_seconds(seconds) + "\">\n";
  for (const Verdict& verdict : verdicts) {
    out += "    <testcase classname=\"cpprun.faults\" name=\"" + escaped(verdict.name) +
           "\" time=\"" + shown_seconds(verdict.seconds) + "\">";
    const std::string text = escaped(verdict.text);
    out += verdict.is_held ? "<system-out>" + text + "</system-out>"
                           : "<failure message=\"" + text + "\"/>";
    out += "</testcase>\n";
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

Summary summarize(const Account& account, const std::vector<Verdict>& verdicts,
                  const std::string& hash) {
  Summary summary;
  summary.hash = hash;
  summary.is_held = std::all_of(verdicts.begin(), verdicts.end(), is_held);
  for (const Strike& strike : account.strikes()) {
    Summary::OneStrike one{name_of(account.plan().faults[strike.fault].what), std::nullopt,
                           strike.lost_steps, strike.lost_epochs};
    if (strike.recovery) one.recovery_s = to_seconds(*strike.recovery);
    summary.strikes.push_back(std::move(one));
  }
  for (const Verdict& verdict : verdicts) {
    if (!verdict.is_held) summary.failed.push_back(verdict.name + ": " + verdict.text);
  }
  return summary;
}

std::string encode(const Summary& summary) {
  ordered_json object = {{"held", summary.is_held}, {"hash", summary.hash}};
  object["strikes"] = ordered_json::array();
  for (const Summary::OneStrike& strike : summary.strikes) {
    ordered_json one = {{"do", strike.what}};
    put(one, "recovery_s", strike.recovery_s);
    put(one, "lost_steps", strike.lost_steps);
    put(one, "lost_epochs", strike.lost_epochs);
    object["strikes"].push_back(std::move(one));
  }
  object["failed"] = summary.failed;
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<Summary> parse_summary(std::string_view json) {
  const ordered_json object = ordered_json::parse(json, nullptr, false);
  const Error bad{ErrorKind::BadValue, "the account of the run is no account of cpprun"};
  if (!object.is_object() || !object.contains("held") || !object["held"].is_boolean()) return bad;
  Summary summary;
  summary.is_held = object["held"].get<bool>();
  summary.hash = object.value("hash", ordered_json("")).is_string() ? object.value("hash", "") : "";
  for (const ordered_json& one : object.value("strikes", ordered_json::array())) {
    if (!one.is_object() || !one.contains("do") || !one["do"].is_string()) return bad;
    Summary::OneStrike strike{one["do"].get<std::string>(), {}, {}, {}};
    take(one, "recovery_s", strike.recovery_s);
    take(one, "lost_steps", strike.lost_steps);
    take(one, "lost_epochs", strike.lost_epochs);
    summary.strikes.push_back(std::move(strike));
  }
  for (const ordered_json& text : object.value("failed", ordered_json::array())) {
    if (text.is_string()) summary.failed.push_back(text.get<std::string>());
  }
  return summary;
}

}  // namespace cpprun::faults
