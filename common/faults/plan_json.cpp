// Plan as JSON: parser and writer.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "common/faults/plan.hpp"
#include "common/json.hpp"
#include "common/limits/faults.hpp"
#include "common/text.hpp"

namespace cpprun::faults {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kNumberMax = std::numeric_limits<int64_t>::max() / 2;
constexpr int kExitCodeMax = 255;
constexpr double kSecondsMax = 1e6;  // eleven days; a double is exact to the nanosecond there

std::string shown(const ordered_json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return dump_json(value, -1, true).substr(0, 80);
}

// Reads the fields of one JSON object of the plan; keeps the first error of the whole plan.
class Fields {
 public:
  Fields(const ordered_json& object, std::string path, std::optional<Error>& error)
      : object_(object), path_(std::move(path)), error_(error) {
    if (!object_.is_object()) refuse("", object_, "an object");
  }

  // Refuses all other keys.
  void allow_only(std::initializer_list<const char*> keys) {
    if (!object_.is_object()) return;
    const std::vector<std::string> known(keys.begin(), keys.end());
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = text::nearest(key, known);
      wrong(path_ + (path_.empty() ? "" : ".") + key.substr(0, 80) + " is no field of a plan" +
            (near.empty() ? "; known are " + text::join(known, ", ")
                          : "; did you mean " + near + "?"));
    }
  }

  const ordered_json* find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  bool has(const char* key) const { return find(key) != nullptr; }
  std::string path_of(const std::string& key) const {
    return path_.empty() || key.empty() ? path_ + key : path_ + "." + key;
  }
  std::optional<Error>& error() { return error_; }

  void refuse(const std::string& key, const ordered_json& value, const std::string& wanted) {
    wrong(path_of(key) + " is " + shown(value) + ", but must be " + wanted);
  }
  void wrong(const std::string& text) {
    if (!error_) error_ = Error{ErrorKind::BadValue, text};
  }

  void text(const char* key, std::string& into) {
    if (const ordered_json* value = find(key)) {
      if (!value->is_string()) return refuse(key, *value, "a text");
      into = value->get<std::string>();
    }
  }
  template <class Number>
  void number(const char* key, Number& into, int64_t from, int64_t to) {
    if (const ordered_json* value = find(key)) {
      const auto read = whole(*value, from, to);
      if (!read) return refuse(key, *value, range_text("a whole number", from, to));
      into = static_cast<Number>(*read);
    }
  }
  void number(const char* key, std::optional<int64_t>& into) {
    if (!has(key)) return;
    into = 0;
    number(key, *into, 0, kNumberMax);
  }
  // Accepts a whole number, or [from, to].
  void span(const char* key, std::optional<Span>& into) {
    read_span(key, into, "a whole number from 0, or a range as [2, 9]",
              [](const ordered_json& value) { return whole(value, 0, kNumberMax); });
  }
  void seconds_span(const char* key, std::optional<Span>& into) {
    read_span(key, into, "seconds from 0, or a range as [0.5, 2]", nanoseconds);
  }
  void seconds(const char* key, Duration& into, const std::string& wanted) {
    if (const ordered_json* value = find(key)) {
      const auto read = nanoseconds(*value);
      if (!read || *read == 0) return refuse(key, *value, wanted);
      into = Duration(*read);
    }
  }
  void selector(const char* key, std::optional<TargetSelector>& into) {
    const ordered_json* value = find(key);
    if (value == nullptr) return;
    const auto read = whole(*value, 0, kNumberMax);
    if (!read && *value != "any") return refuse(key, *value, "a whole number from 0, or \"any\"");
    into = TargetSelector{read, 0};
  }

 private:
  static std::optional<int64_t> whole(const ordered_json& value, int64_t from, int64_t to) {
    if (!value.is_number_integer()) return std::nullopt;
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kNumberMax)) {
      return std::nullopt;
    }
    const auto read = value.get<int64_t>();
    return read >= from && read <= to ? std::optional(read) : std::nullopt;
  }
  static std::optional<int64_t> nanoseconds(const ordered_json& value) {
    if (!value.is_number()) return std::nullopt;
    const auto read = value.get<double>();
    if (!(read >= 0 && read <= kSecondsMax)) return std::nullopt;
    return static_cast<int64_t>(std::llround(read * 1e9));
  }
  static std::string range_text(const std::string& noun, int64_t from, int64_t to) {
    std::string text = noun + " from " + std::to_string(from);
    return to == kNumberMax ? text : text + " to " + std::to_string(to);
  }
  template <class Read>
  void read_span(const char* key, std::optional<Span>& into, const char* wanted, Read read) {
    const ordered_json* value = find(key);
    if (value == nullptr) return;
    const bool is_range = value->is_array() && value->size() == 2;
    const auto from = read(is_range ? (*value)[0] : *value);
    const auto to = read(is_range ? (*value)[1] : *value);
    if (!from || !to || *from > *to) return refuse(key, *value, wanted);
    into = Span{*from, *to};
  }

  const ordered_json& object_;
  const std::string path_;
  std::optional<Error>& error_;
};

// `names`: the words of the values of an enum, in its order.
template <class Value>
void read_word(Fields& fields, const char* key, Value& into, std::span<const char* const> names) {
  const ordered_json* value = fields.find(key);
  for (size_t i = 0; i < names.size(); ++i) {
    if (value == nullptr || *value != names[i]) continue;
    into = static_cast<Value>(i);
    return;
  }
  fields.refuse(key, value == nullptr ? ordered_json("missing") : *value,
                "one of " + text::join({names.begin(), names.end()}, ", "));
}

void read_place(Fields& at, Fault& fault) {
  at.allow_only(
      {"rank", "node", "step", "epoch", "round", "attempt", "phase", "after_s", "every_s"});
  at.selector("rank", fault.rank);
  at.selector("node", fault.node);
  at.span("step", fault.step);
  at.span("epoch", fault.epoch);
  at.span("round", fault.round);
  at.span("attempt", fault.attempt);
  at.seconds_span("after_s", fault.after_ns);
  if (at.has("phase")) {
    fault.phase.emplace();
    read_word(at, "phase", *fault.phase, kPhaseNames);
  }
  if (at.has("every_s")) {
    fault.every.emplace();
    at.seconds("every_s", *fault.every, "the mean seconds between two, above 0");
  }
}

// The first combination of fields that makes no sense; empty if there is none.
std::string contradiction(const Fault& fault, const Fields& own) {
  const std::string name = name_of(fault.what);
  const int whens =
      (fault.is_at_place() ? 1 : 0) + (fault.after_ns ? 1 : 0) + (fault.every ? 1 : 0);
  if (whens > 1) {
    return ".at names several of: a place in the program (step, epoch, phase), after_s, every_s; "
           "keep one";
  }
  if (fault.is_of_program() && !fault.is_at_place()) {
    return " is '" + name + "', which the program does itself: give it a step, an epoch or a phase";
  }
  if (fault.node && !fault.is_of_agent()) {
    return ".at.node: '" + name + "' hits a worker; name its rank instead";
  }
  if (fault.node && fault.rank) return ".at names a rank and a node; keep one";
  if (fault.node && fault.is_at_place()) {
    return ".at.node: a place in the program is that of a worker; name its rank instead";
  }
  if (own.has("code") && fault.what != FaultKind::Exit)
    return ".code is for 'exit' alone; remove it";
  const bool may_last = fault.what == FaultKind::Slow || fault.what == FaultKind::Stop ||
                        fault.what == FaultKind::DiskFull;
  if (own.has("for_s") && !may_last) return ".for_s is for slow, stop and disk-full; remove it";
  if (fault.what == FaultKind::Slow && fault.lasts == Duration{}) {
    return " is 'slow' without for_s: give the number of seconds";
  }
  if (fault.times > 1 && fault.after_ns) return ".times: after_s comes once; use every_s instead";
  if (fault.every && (fault.round || fault.attempt)) {
    return ".at.every_s goes through all rounds; remove round and attempt";
  }
  return "";
}

Fault read_fault(const ordered_json& json, const std::string& path, std::optional<Error>& error) {
  Fault fault;
  Fields own(json, path, error);
  own.allow_only({"do", "at", "code", "for_s", "times"});
  if (error) return fault;
  read_word(own, "do", fault.what, kFaultNames);
  own.number("code", fault.exit_code, 0, kExitCodeMax);
  own.seconds("for_s", fault.lasts, "seconds above 0");
  if (const ordered_json* at = own.find("at")) {
    Fields place(*at, path + ".at", error);
    read_place(place, fault);
  }
  fault.times = fault.every ? limits::kFaultInjections : 1;
  own.number("times", fault.times, 1, limits::kFaultInjections);
  const std::string why = error ? "" : contradiction(fault, own);
  if (!why.empty()) own.wrong(path + why);
  return fault;
}

void read_hash(const ordered_json& json, FinalHash& hash, std::optional<Error>& error) {
  Fields own(json, "expect.final_hash", error);
  own.allow_only({"file", "is"});
  own.text("file", hash.file);
  own.text("is", hash.is);
  if (!own.has("file") || hash.file.empty()) own.wrong("expect.final_hash needs a file");
  const bool is_hex = hash.is.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hash.is.empty() && (hash.is.size() != 8 || !is_hex)) {
    own.wrong(
        "expect.final_hash.is must be the file's crc32 as 8 hex digits; without it, "
        "cpprunctl chaos compares with a run without faults");
  }
}

Expectations read_expectations(const ordered_json& json, std::optional<Error>& error) {
  Expectations expect;
  Fields own(json, "expect", error);
  own.allow_only({"exit_code", "restarts", "max_recovery_s", "max_lost_steps", "max_lost_epochs",
                  "final_hash"});
  own.number("exit_code", expect.exit_code, 0, kExitCodeMax);
  own.span("restarts", expect.restarts);
  own.number("max_lost_steps", expect.lost_steps_max);
  own.number("max_lost_epochs", expect.lost_epochs_max);
  if (own.has("max_recovery_s")) {
    expect.recovery_max.emplace();
    own.seconds("max_recovery_s", *expect.recovery_max, "seconds above 0");
  }
  if (const ordered_json* hash = own.find("final_hash")) {
    expect.final_hash.emplace();
    read_hash(*hash, *expect.final_hash, error);
  }
  return expect;
}

void read_faults(const ordered_json& list, Plan& plan, std::optional<Error>& error) {
  if (!list.is_array() || list.size() > limits::kFaultsPerPlan) {
    error = Error{ErrorKind::BadValue, "plan must be a list of at most " +
                                           std::to_string(limits::kFaultsPerPlan) + " faults"};
    return;
  }
  for (size_t i = 0; i < list.size() && !error; ++i) {
    plan.faults.push_back(read_fault(list[i], "plan[" + std::to_string(i) + "]", error));
  }
}

ordered_json to_json(const Span& span) {
  if (span.from == span.to) return span.from;
  return ordered_json::array({span.from, span.to});
}

double in_seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

ordered_json to_json(const Fault& fault) {
  ordered_json at = ordered_json::object();
  const auto selector = [&at](const char* key, const std::optional<TargetSelector>& value) {
    if (value) at[key] = value->number ? ordered_json(*value->number) : ordered_json("any");
  };
  const auto span = [&at](const char* key, const std::optional<Span>& value) {
    if (value) at[key] = to_json(*value);
  };
  selector("rank", fault.rank);
  selector("node", fault.node);
  span("step", fault.step);
  span("epoch", fault.epoch);
  span("round", fault.round);
  span("attempt", fault.attempt);
  if (fault.phase) at["phase"] = name_of(*fault.phase);
  if (fault.after_ns) {
    at["after_s"] =
        ordered_json::array({in_seconds(fault.after_ns->from), in_seconds(fault.after_ns->to)});
  }
  if (fault.every) at["every_s"] = to_seconds(*fault.every);
  ordered_json object = {{"do", name_of(fault.what)}, {"at", at}};
  if (fault.what == FaultKind::Exit) object["code"] = fault.exit_code;
  if (fault.lasts > Duration{}) object["for_s"] = to_seconds(fault.lasts);
  if (!fault.after_ns) object["times"] = fault.times;
  return object;
}

ordered_json to_json(const Expectations& expect) {
  ordered_json object = {{"exit_code", expect.exit_code}};
  if (expect.restarts) object["restarts"] = to_json(*expect.restarts);
  if (expect.recovery_max) object["max_recovery_s"] = to_seconds(*expect.recovery_max);
  if (expect.lost_steps_max) object["max_lost_steps"] = *expect.lost_steps_max;
  if (expect.lost_epochs_max) object["max_lost_epochs"] = *expect.lost_epochs_max;
  if (expect.final_hash) {
    object["final_hash"]["file"] = expect.final_hash->file;
    if (!expect.final_hash->is.empty()) object["final_hash"]["is"] = expect.final_hash->is;
  }
  return object;
}

}  // namespace

Result<Plan> parse_plan(std::string_view text, const std::string& name) {
  Plan plan;
  plan.name = name;
  std::optional<Error> error;
  const auto named = [&name](const std::string& why) {
    return Error{ErrorKind::BadValue, "the fault plan " + name + ": " + why};
  };
  if (text.size() > limits::kFaultPlanBytes) return named("it is larger than 1 MiB");
  const ordered_json json = ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) return named("it is no JSON");
  Fields own(json, "", error);
  own.allow_only({"plan", "seed", "expect"});
  if (!own.has("plan") && !error)
    own.wrong("it has no list 'plan'; docs/reference/faults.md has examples");
  own.number("seed", plan.seed, 0, kNumberMax);
  if (const ordered_json* list = own.find("plan"); list != nullptr && !error) {
    read_faults(*list, plan, error);
  }
  if (const ordered_json* expect = own.find("expect"); expect != nullptr && !error) {
    plan.expect = read_expectations(*expect, error);
  }
  if (error) return named(error->text);
  return plan;
}

std::string encode(const Plan& plan) {
  ordered_json object;
  object["plan"] = ordered_json::array();
  for (const Fault& fault : plan.faults) object["plan"].push_back(to_json(fault));
  object["seed"] = plan.seed;
  if (plan.expect) object["expect"] = to_json(*plan.expect);
  return dump_json(object, 2) + "\n";
}

}  // namespace cpprun::faults
