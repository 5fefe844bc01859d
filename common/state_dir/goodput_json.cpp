#include "common/state_dir/goodput_json.hpp"

#include <nlohmann/json.hpp>

#include "common/json.hpp"

namespace cpprun {
namespace {

using nlohmann::ordered_json;

constexpr int kDepthMax = 4;
constexpr int kVersion = 1;
// Of one phase, so that the sums over all phases and submissions fit into a Duration.
constexpr Duration kSpentMax = std::chrono::hours(24 * 365 * 5);
constexpr int64_t kCountMax = 1'000'000'000;
constexpr size_t kSubmissionBytes = 64;

ordered_json json_of(const Goodput& goodput) {
  ordered_json spent = ordered_json::object();
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    spent[name_of(static_cast<GoodputPhase>(i))] = goodput.spent[i].count();
  }
  return {{"submissions", goodput.submissions},
          {"failures", goodput.failures},
          {"restarts", goodput.restarts},
          {"spent_ns", spent}};
}

// A missing number is 0. False: it is none, or out of range.
bool read(const ordered_json& object, const char* name, int64_t least, int64_t most,
          int64_t& value) {
  const auto found = object.find(name);
  if (found == object.end()) return true;
  if (!found->is_number_integer()) return false;
  if (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX) return false;
  value = found->get<int64_t>();
  return value >= least && value <= most;
}

bool read(const ordered_json& object, const char* name, Goodput& goodput) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_object()) return false;
  const auto spent = found->find("spent_ns");
  if (spent == found->end() || !spent->is_object()) return false;
  bool is_well = read(*found, "submissions", 0, kCountMax, goodput.submissions) &&
                 read(*found, "failures", 0, kCountMax, goodput.failures) &&
                 read(*found, "restarts", 0, kCountMax, goodput.restarts);
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    int64_t nanoseconds = 0;
    const char* phase = name_of(static_cast<GoodputPhase>(i));
    is_well = is_well && read(*spent, phase, 0, kSpentMax.count(), nanoseconds);
    goodput.spent[i] = Duration(nanoseconds);
  }
  return is_well;
}

}  // namespace

std::string goodput_record_json(const GoodputRecord& record) {
  const ordered_json object{{"version", kVersion},
                            {"submission", record.submission},
                            {"best_step", record.best_step},
                            {"earlier", json_of(record.earlier)},
                            {"newest", json_of(record.newest)}};
  return dump_json(object, 2) + "\n";
}

Result<GoodputRecord> parse_goodput_record(std::string_view text) {
  const Error none{ErrorKind::Protocol, "it holds no goodput of this version of cpprun"};
  const auto object = parse_json<ordered_json>(text, kDepthMax);
  if (!object.is_object() || object.value("version", ordered_json()) != kVersion) return none;
  GoodputRecord record;
  const ordered_json submission = object.value("submission", ordered_json());
  if (!submission.is_string()) return none;
  record.submission = submission.get<std::string>().substr(0, kSubmissionBytes);
  const bool is_well = read(object, "best_step", -1, INT64_MAX, record.best_step) &&
                       read(object, "earlier", record.earlier) &&
                       read(object, "newest", record.newest);
  if (!is_well) return none;
  return record;
}

}  // namespace cpprun
