#include "launcher/doctor/cross_node_checks.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "common/text.hpp"

namespace cpprun::doctor {
namespace {

using enum Level;

using namespace std::chrono_literals;

constexpr Duration kClocksApart = 500ms;  // beyond it, merged events of two nodes get out of order
constexpr size_t kNamed = 6;              // pairs that one line names
constexpr double kOutlier = 3;            // times worse than the median of all pairs

std::string numbered(const char* format, double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}
std::string time_text(Duration time) {
  return time >= 1s ? text::seconds(time) : numbered("%.3g ms", to_seconds(time) * 1e3);
}
std::string speed(double bytes_per_s) { return numbered("%.3g Gbit/s", bytes_per_s * 8 / 1e9); }

std::string name_of(const NodesFacts& f, int64_t number) {
  return f.nodes.at(static_cast<size_t>(number)).name;
}
std::string pair_of(const NodesFacts& f, const PairFacts& pair) {
  return name_of(f, pair.from) + " to " + name_of(f, pair.to);
}

std::string some_of(std::vector<std::string> all) {
  if (all.size() > kNamed) {
    const std::string rest = std::to_string(all.size() - kNamed) + " more";
    all.resize(kNamed);
    all.push_back(rest);
  }
  return text::join(all, "; ");
}

// The text of each pair for which `describe` returns one.
template <class Describe>
std::vector<std::string> pair_texts(const NodesFacts& f, Describe describe) {
  std::vector<std::string> texts;
  for (const PairFacts& pair : f.pairs) {
    const std::string text = describe(pair);
    if (!text.empty()) texts.push_back(pair_of(f, pair) + ": " + text);
  }
  return texts;
}

Finding nodes(const NodesFacts& f) {
  std::vector<std::string> names;
  for (const NodeCard& node : f.nodes) names.push_back(node.name);
  const std::string here = some_of(names);
  if (static_cast<int64_t>(f.nodes.size()) >= f.wanted) {
    return {Good, std::to_string(f.wanted) + " met: " + here};
  }
  return {Problem,
          std::to_string(f.nodes.size()) + " of " + std::to_string(f.wanted) + " came within " +
              std::to_string(f.waited / 1s) + " s: " + here,
          "start it with the same --endpoint and --nnodes on every node; if it was, the others "
          "can't reach the endpoint"};
}

Finding versions(const NodesFacts& f) {
  std::map<std::string, std::vector<std::string>> by_version;
  for (const NodeCard& node : f.nodes) by_version[node.version].push_back(node.name);
  if (by_version.size() <= 1) {
    return {Good, f.nodes.empty() ? "" : "cpprun " + by_version.begin()->first};
  }
  std::vector<std::string> texts;
  for (const auto& [version, names] : by_version) {
    texts.push_back("cpprun " + version + " on " + some_of(names));
  }
  return {Problem, text::join(texts, "; "), "install the same cpprun on all nodes"};
}

Finding reach(const NodesFacts& f) {
  const auto blocked = pair_texts(f, [](const PairFacts& pair) { return pair.error; });
  if (blocked.empty()) {
    return {Good, std::to_string(f.pairs.size()) + " ways between nodes are open"};
  }
  return {Problem, some_of(blocked),
          "open all TCP ports between the nodes (workers take free ones): firewall, security "
          "group, or another network by --local-addr"};
}

Finding names(const NodesFacts& f) {
  const auto wrong = pair_texts(f, [](const PairFacts& pair) { return pair.name_error; });
  if (wrong.empty()) return {Good, "names of nodes lead to them"};
  return {
      Note, some_of(wrong),
      "cpprun itself uses addresses; for programs that use names: DNS, or /etc/hosts on all nodes"};
}

Finding clocks(const NodesFacts& f) {
  Duration most{};
  for (const PairFacts& pair : f.pairs) {
    if (pair.error.empty()) most = std::max(most, std::chrono::abs(pair.clock_ahead));
  }
  if (most <= kClocksApart) {
    return {Good, "at most " + time_text(most) + " apart"};
  }
  // One direction per pair: the other one shows the same offset.
  const auto apart = pair_texts(f, [](const PairFacts& pair) -> std::string {
    if (!pair.error.empty() || pair.clock_ahead <= kClocksApart) return "";
    return "its clock is ahead by " + time_text(pair.clock_ahead);
  });
  return {Warning, some_of(apart),
          "synchronise the clocks (chrony, systemd-timesyncd) on all nodes"};
}

template <class Value>
Value median(std::vector<Value> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Finding latency(const NodesFacts& f) {
  std::vector<Duration> all;
  for (const PairFacts& pair : f.pairs) {
    if (pair.error.empty()) all.push_back(pair.latency);
  }
  const Duration usual = median(all);
  // Below a millisecond, scheduling pauses alone exceed a multiple of the median.
  const Duration most = f.most_latency > Duration{}
                            ? f.most_latency
                            : std::max<Duration>(usual * static_cast<int>(kOutlier), 1ms);
  const auto slow = pair_texts(f, [&](const PairFacts& pair) {
    return pair.error.empty() && pair.latency > most ? time_text(pair.latency) : "";
  });
  const std::string text = "usually " + time_text(usual) + " there and back";
  if (slow.empty()) return {Good, text};
  return {Warning, some_of(slow) + " (" + text + ")",
          "see which way these nodes' packets take: another switch, or a network that is busy"};
}

Finding speeds(const NodesFacts& f) {
  std::vector<double> all;
  for (const PairFacts& pair : f.pairs) {
    if (pair.error.empty()) all.push_back(pair.bytes_per_s);
  }
  const double usual = median(all);
  const double least = f.least_bytes_per_s > 0 ? f.least_bytes_per_s : usual / kOutlier;
  const auto slow = pair_texts(f, [&](const PairFacts& pair) {
    return pair.error.empty() && pair.bytes_per_s < least ? speed(pair.bytes_per_s) : "";
  });
  const std::string text = "usually " + speed(usual) + " over one connection";
  if (slow.empty()) return {Good, text};
  return {Warning, some_of(slow) + " (" + text + ")",
          "look at these nodes' cards: negotiated speed (ethtool), errors (ip -s link), which card "
          "the address is on (--local-addr)"};
}

struct CrossNodeCheck {
  std::string_view name;
  Finding (*find)(const NodesFacts&);
};
constexpr CrossNodeCheck kCrossNodeChecks[] = {
    {"nodes", nodes},   {"versions", versions}, {"reach", reach}, {"names", names},
    {"clocks", clocks}, {"latency", latency},   {"speed", speeds}};

}  // namespace

std::vector<Finding> run_cross_node_checks(const NodesFacts& facts) {
  std::vector<Finding> all;
  for (const CrossNodeCheck& check : kCrossNodeChecks) {
    all.push_back(check.find(facts));
    all.back().check = check.name;
  }
  return all;
}

// The circle method: the players are an even number, with a dummy as the last one if `count` is
// odd. In round r the players whose numbers add up to r (modulo circle) meet; a player whose
// partner would be himself meets the last one.
int64_t count_rounds(int64_t count) { return count < 2 ? 0 : count - 1 + count % 2; }
int64_t partner_of(int64_t number, int64_t round, int64_t count) {
  const int64_t circle = count_rounds(count);  // odd
  const int64_t last = circle;
  if (number == last) return round * ((circle + 1) / 2) % circle;
  const int64_t other = ((round - number) % circle + circle) % circle;
  return other == number ? (last < count ? last : count) : other;
}

}  // namespace cpprun::doctor
