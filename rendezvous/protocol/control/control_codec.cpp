#include "rendezvous/protocol/control/control_codec.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "common/json.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/election.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/server.hpp"
#include "rendezvous/protocol/control/control_fields.hpp"

namespace cpprun::control {
namespace {

using nlohmann::json;

template <class T>
concept HasFields = requires(T& message) {
  fields([](std::string_view, auto&) {}, message);
};

// Rejects input that nests deeper than the limit or holds binary values. Builds nothing.
class DepthCheck : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return ++depth_ <= limits::kControlFrameDepth; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(std::size_t) override { return ++depth_ <= limits::kControlFrameDepth; }
  bool end_array() override { return depth_-- > 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  int depth_ = 0;
};

// ---------------------------------------------------------------- encoding

json to_json(int64_t value) { return value; }
json to_json(bool value) { return value; }
json to_json(const std::string& value) { return value.substr(0, limits::kSummaryTextBytes); }
json to_json(Duration value) { return value.count(); }
json to_json(Instant value) { return value.nanoseconds(); }
json to_json(WallTime value) { return value.microseconds; }
template <class Tag, class Number>
json to_json(Id<Tag, Number> value) {
  return value.value;
}
template <class Enum>
requires std::is_enum_v<Enum> json to_json(Enum value) { return static_cast<int64_t>(value); }
json to_json(int value) { return value; }

template <HasFields T>
json to_json(const T& value);

template <class T>
json to_json(const std::vector<T>& values) {
  json all = json::array();
  for (const T& value : values) all.push_back(to_json(value));
  return all;
}
template <class T>
json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : json(nullptr);
}

template <HasFields T>
json to_json(const T& value) {
  json object = json::object();
  fields([&object](std::string_view name, auto& field) { object.emplace(name, to_json(field)); },
         const_cast<T&>(value));
  return object;
}

// ---------------------------------------------------------------- decoding; false: wrong type or
// range

template <class Number>
requires std::is_integral_v<Number>
bool from_json(const json& j, Number& value) {
  if constexpr (std::is_same_v<Number, bool>) {
    if (!j.is_boolean()) return false;
    value = j.get<bool>();
    return true;
  } else if constexpr (std::is_unsigned_v<Number>) {
    if (!j.is_number_unsigned()) return false;
    value = j.get<Number>();
    return true;
  } else {
    if (!j.is_number_integer()) return false;
    if (j.is_number_unsigned() && j.get<uint64_t>() > INT64_MAX) return false;
    int64_t wide = j.get<int64_t>();
    value = static_cast<Number>(wide);
    return value == wide;
  }
}
bool from_json(const json& j, std::string& value) {
  if (!j.is_string() || j.get_ref<const std::string&>().size() > limits::kSummaryTextBytes) {
    return false;
  }
  value = j.get_ref<const std::string&>();
  return true;
}
bool from_json(const json& j, Duration& value) {
  int64_t ns = 0;
  if (!from_json(j, ns)) return false;
  value = Duration(ns);
  return value >= -limits::kWireDurationMax && value <= limits::kWireDurationMax;
}
bool from_json(const json& j, Instant& value) {
  int64_t ns = 0;
  if (!from_json(j, ns)) return false;
  value = Instant::from_nanoseconds(ns);
  return true;
}
bool from_json(const json& j, WallTime& value) { return from_json(j, value.microseconds); }
template <class Tag, class Number>
bool from_json(const json& j, Id<Tag, Number>& value) {
  return from_json(j, value.value);
}
template <class Enum>
requires std::is_enum_v<Enum>
bool from_json(const json& j, Enum& value) {
  int64_t number = 0;
  if (!from_json(j, number) || number < 0 || number > last_value(value)) return false;
  value = static_cast<Enum>(number);
  return true;
}

template <HasFields T>
bool from_json(const json& j, T& value);

template <class T>
bool from_json(const json& j, std::vector<T>& values) {
  if (!j.is_array()) return false;
  values.clear();
  for (const json& item : j) {
    if (!from_json(item, values.emplace_back())) return false;
  }
  return true;
}
template <class T>
bool from_json(const json& j, std::optional<T>& value) {
  if (j.is_null()) {
    value.reset();
    return true;
  }
  return from_json(j, value.emplace());
}

template <HasFields T>
bool from_json(const json& j, T& value) {
  if (!j.is_object()) return false;
  bool all_well = true;
  fields(
      [&](std::string_view name, auto& field) {
        auto it = j.find(name);
        if (it != j.end() && !from_json(*it, field)) all_well = false;
      },
      value);
  return all_well;
}

// ---------------------------------------------------------------- whole messages

template <class Variant>
std::vector<uint8_t> encode_any(const Variant& message) {
  json whole = std::visit(
      [](const auto& m) {
        return json::array({name_of(m), to_json(m)});
      },
      message);
  return json::to_msgpack(whole);
}

Error broken(const std::string& why) {
  return Error{ErrorKind::Protocol, "a peer sent a broken control message: " + why};
}

template <class Variant, size_t I = 0>
Result<Variant> decode_named(std::string_view name, const json& body) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return broken("no message has that name");
  } else {
    std::variant_alternative_t<I, Variant> message;
    if (name != name_of(message)) return decode_named<Variant, I + 1>(name, body);
    if (!from_json(body, message))
      return broken("a field of '" + std::string(name) + "' has a wrong type, range or length");
    return Variant(std::move(message));
  }
}

bool is_sane(const Leader& leader) {
  return !leader.address.empty() && leader.address.size() <= limits::kNameBytes &&
         leader.node.name.size() <= limits::kNameBytes && leader.port > 0 && leader.port <= 65535;
}

bool is_count(int64_t number) { return number >= 0 && number <= INT64_MAX / 2; }

bool is_sane(const PersistedJobState& facts) {
  return facts.first_term > Term() && facts.first_term <= facts.term &&
         is_count(facts.term.value) && is_count(facts.round.value) && facts.group_size >= 0 &&
         facts.group_size <= limits::kNodesPerJob && facts.host_rank >= -1 &&
         facts.host_rank < std::max<int64_t>(facts.group_size, 1) &&
         is_count(facts.restart_count) && is_count(facts.hang_restarts) &&
         is_count(facts.node_losses) && is_count(facts.admin_restarts) &&
         is_count(facts.wanted_nodes.value_or(0));
}

template <class Variant>
Result<Variant> decode_any(std::span<const uint8_t> bytes,
                           size_t longest = limits::kControlFrameBytes) {
  if (bytes.size() > longest) return broken("it is too long");
  DepthCheck check;
  if (!json::sax_parse(bytes.begin(), bytes.end(), &check, json::input_format_t::msgpack)) {
    return broken("it is no MessagePack, or nested too deep");
  }
  json whole = json::from_msgpack(bytes.begin(), bytes.end(), true, false);
  if (!whole.is_array() || whole.size() != 2 || !whole[0].is_string()) {
    return broken("it is no [name, fields]");
  }
  return decode_named<Variant>(whole[0].get_ref<const std::string&>(), whole[1]);
}

// ---------------------------------------------------------------- values in etcd

template <class T>
std::string encode_value(const T& value) {
  const std::vector<uint8_t> bytes = encode_any(std::variant<T>(value));
  return std::string(bytes.begin(), bytes.end());
}

template <class T>
Result<T> decode_value(std::string_view bytes) {
  const std::span raw(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  auto found = decode_any<std::variant<T>>(raw, limits::kElectionValueBytes);
  if (!found) return Error{ErrorKind::Protocol, "it is no value of cpprun's"};
  T value = std::get<T>(std::move(*found));
  if (!is_sane(value)) return Error{ErrorKind::Protocol, "a number or a name is out of range"};
  return value;
}

}  // namespace

std::vector<uint8_t> encode(const AgentMessage& message) { return encode_any(message); }
std::vector<uint8_t> encode(const CoordinatorMessage& message) { return encode_any(message); }

Result<AgentMessage> decode_agent(std::span<const uint8_t> bytes) {
  return decode_any<AgentMessage>(bytes);
}
Result<CoordinatorMessage> decode_coordinator(std::span<const uint8_t> bytes) {
  return decode_any<CoordinatorMessage>(bytes);
}

std::string host_records_json(const HostRecords& records) {
  return dump_json(to_json(records), 2) + "\n";
}

Result<HostRecords> parse_host_records(std::string_view text) {
  HostRecords records;
  const json read = parse_json<json>(text, limits::kControlFrameDepth);
  if (!from_json(read, records) || records.revision < 1) {
    return Error{ErrorKind::Protocol, "it holds no records of hosts"};
  }
  return records;
}

std::string leader_key(const std::string& run_id) { return "cpprun/" + run_id + "/leader"; }
std::string job_state_key(const std::string& run_id) { return "cpprun/" + run_id + "/job_state"; }
std::string encode_leader(const Leader& leader) { return encode_value(leader); }
std::string encode_job_state(const PersistedJobState& facts) { return encode_value(facts); }
Result<Leader> decode_leader(std::string_view bytes) { return decode_value<Leader>(bytes); }
Result<PersistedJobState> decode_job_state(std::string_view bytes) {
  return decode_value<PersistedJobState>(bytes);
}

}  // namespace cpprun::control
