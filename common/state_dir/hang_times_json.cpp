#include "common/state_dir/hang_times_json.hpp"

#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/limits/agent.hpp"

namespace cpprun {
namespace {

using nlohmann::json;

constexpr int kTimesDepthMax = 3;
constexpr int kTimesVersion = 1;
// Longer than any section, and limits are a multiple of it.
constexpr Duration kTimeMax = std::chrono::hours(24 * 365);

json json_of(const std::map<std::string, Duration>& times) {
  json object = json::object();
  for (const auto& [name, time] : times) object[name] = time.count();
  return object;
}

bool read(const json& object, const char* name, std::map<std::string, Duration>& times) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_object()) return false;
  if (found->size() > limits::kSectionsKnown) return false;
  for (const auto& [key, value] : found->items()) {
    // A number that exceeds an int64_t is unsigned.
    if (!value.is_number_integer() || value > kTimeMax.count() || value < 0) return false;
    times[key] = Duration(value.get<int64_t>());
  }
  return true;
}

}  // namespace

std::string hang_times_json(const HangTimes& times) {
  const json object{{"version", kTimesVersion},
                    {"phases_ns", json_of(times.phases)},
                    {"sections_ns", json_of(times.sections)}};
  return dump_json(object, 2) + "\n";
}

Result<HangTimes> parse_hang_times(std::string_view text) {
  const Error none{ErrorKind::Protocol, "it holds no times of this version of cpprun"};
  const auto object = parse_json<json>(text, kTimesDepthMax);
  if (!object.is_object() || object.value("version", json()) != kTimesVersion) return none;
  HangTimes times;
  const bool is_well =
      read(object, "phases_ns", times.phases) && read(object, "sections_ns", times.sections);
  if (!is_well) return none;
  return times;
}

}  // namespace cpprun
