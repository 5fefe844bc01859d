#include "launcher/cpprunctl/doctor/doctor_protocol.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/limits/admin.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun::ctl {
namespace {

using nlohmann::json;

Error bad_value() {
  return Error{
      ErrorKind::Protocol,
      "a node has published what no cpprunctl doctor publishes; use the same cpprun on all nodes"};
}

json parsed(const std::string& text) {
  if (text.size() > limits::kDoctorCardBytes) return nullptr;
  return json::parse(text, nullptr, false);
}

std::string text_at(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return "";
  return found->get<std::string>().substr(0, limits::kNameBytes);
}
int64_t number_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
}
double real_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}
Duration time_at(const json& object, const char* name) {
  const double most = to_seconds(limits::kWireDurationMax);
  return seconds(std::clamp(real_at(object, name), -most, most));
}

}  // namespace

std::string encode(const doctor::NodeCard& card) {
  return dump_json(json{{"name", card.name},
                        {"version", card.version},
                        {"addresses", card.addresses},
                        {"port", card.port},
                        {"secret", card.secret}});
}

Result<doctor::NodeCard> decode_card(const std::string& text) {
  const json object = parsed(text);
  if (!object.is_object()) return bad_value();
  doctor::NodeCard card{text_at(object, "name"),
                        text_at(object, "version"),
                        {},
                        number_at(object, "port"),
                        text_at(object, "secret")};
  const auto all = object.find("addresses");
  const bool has_addresses =
      all != object.end() && all->is_array() && all->size() <= limits::kAddressesPerNode;
  if (!has_addresses || card.port < 1 || card.port > 65535) return bad_value();
  for (const json& one : *all) {
    if (!one.is_string()) return bad_value();
    card.addresses.push_back(one.get<std::string>());
  }
  return card;
}

std::string encode(const std::vector<doctor::PairFacts>& pairs) {
  json all = json::array();
  for (const doctor::PairFacts& pair : pairs) {
    all.push_back({{"from", pair.from},
                   {"to", pair.to},
                   {"error", pair.error},
                   {"name_error", pair.name_error},
                   {"latency_s", to_seconds(pair.latency)},
                   {"clock_ahead_s", to_seconds(pair.clock_ahead)},
                   {"bytes_per_s", pair.bytes_per_s}});
  }
  return dump_json(all);
}

Result<std::vector<doctor::PairFacts>> decode_pairs(const std::string& text, int64_t nodes) {
  const json all = parsed(text);
  if (!all.is_array()) return bad_value();
  std::vector<doctor::PairFacts> pairs;
  for (const json& one : all) {
    if (!one.is_object()) return bad_value();
    doctor::PairFacts pair{number_at(one, "from"),     number_at(one, "to"),
                           text_at(one, "error"),      text_at(one, "name_error"),
                           time_at(one, "latency_s"),  time_at(one, "clock_ahead_s"),
                           real_at(one, "bytes_per_s")};
    const bool is_sane = pair.from >= 0 && pair.from < nodes && pair.to >= 0 && pair.to < nodes;
    if (!is_sane) return bad_value();
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

std::string text_of(const doctor::Finding& finding) {
  const auto column = [](std::string_view text, size_t width) {
    std::string padded(text);
    padded.resize(std::max(width, padded.size()), ' ');
    return padded + "  ";
  };
  const std::string start = column(doctor::name(finding.level), 7) + column(finding.check, 9);
  std::string lines = start + finding.text + "\n";
  if (!finding.cure.empty()) {
    lines += std::string(start.size(), ' ') + "cure: " + finding.cure + "\n";
  }
  return lines;
}

std::string text_of(const std::vector<doctor::Finding>& findings, bool is_verbose) {
  const auto count = [&](doctor::Level level) {
    return static_cast<size_t>(std::ranges::count(findings, level, &doctor::Finding::level));
  };
  const auto counted = [&](doctor::Level level, std::string_view noun) {
    const size_t found = count(level);
    return ", " + (found == 0 ? "no " + std::string(noun) : text::count(found, noun));
  };
  std::string text;
  for (const doctor::Finding& finding : findings) {
    if (is_verbose || finding.level != doctor::Level::Good) text += text_of(finding);
  }
  if (!text.empty()) text += "\n";
  const size_t ok = count(doctor::Level::Good);
  return text + text::count(findings.size(), "check") + ": " + std::to_string(ok) + " ok" +
         (ok > 0 && !is_verbose ? " (-v shows them)" : "") + counted(doctor::Level::Note, "note") +
         counted(doctor::Level::Warning, "warning") + counted(doctor::Level::Problem, "problem") +
         (is_well(findings) ? "" : "; jobs will fail here") + "\n";
}

void print_findings(const std::vector<doctor::Finding>& findings, FindingsFormat format) {
  if (format != FindingsFormat::Json) {
    return print_hanging(text_of(findings, format == FindingsFormat::Verbose));
  }
  json all = json::array();
  for (const doctor::Finding& finding : findings) {
    all.push_back({{"check", finding.check},
                   {"level", doctor::name(finding.level)},
                   {"text", finding.text},
                   {"cure", finding.cure}});
  }
  print(dump_json(all, 2) + "\n");
}

}  // namespace cpprun::ctl
