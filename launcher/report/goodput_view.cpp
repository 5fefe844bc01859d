#include "launcher/report/goodput_view.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/json.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun::ctl {
namespace {

using nlohmann::json;

constexpr double kNumberMax = 9e11;  // ms: 28 years; ten such phases fit into a Duration
constexpr int kDepthMax = 8;

// A number of an untrusted file; negative ones and nonsense are 0.
double number_in(const json& object, const char* name) {
  const auto found = object.find(name);
  const bool is_number = found != object.end() && found->is_number();
  return is_number ? std::clamp(found->get<double>(), 0.0, kNumberMax) : 0;
}

Goodput goodput_in(const json& object) {
  Goodput goodput;
  const json spent = object.value("spent_ms", json());
  if (!spent.is_object()) return goodput;
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    goodput.spent[i] = seconds(number_in(spent, name_of(static_cast<GoodputPhase>(i))) / 1e3);
  }
  goodput.failures = static_cast<int64_t>(number_in(object, "failures"));
  goodput.restarts = static_cast<int64_t>(number_in(object, "restarts"));
  return goodput;
}

std::string percent(Duration part, Duration whole) {
  std::array<char, 32> text{};
  const double share = whole > Duration{} ? to_seconds(part) / to_seconds(whole) : 0;
  std::snprintf(text.data(), text.size(), "%.1f %%", share * 100);
  return text.data();
}

}  // namespace

std::optional<GoodputView> goodput_view(std::string_view line) {
  const auto event = parse_json<json>(std::string(line), kDepthMax);
  const bool is_ours = event.is_object() && event.value("event", json()) == "goodput" &&
                       event.contains("spent_ms") && event["spent_ms"].is_object();
  if (!is_ours) return std::nullopt;
  GoodputView view;
  view.goodput = goodput_in(event);
  const json own = event.value("this_submission", json());
  if (own.is_object()) {
    const double submissions = std::max(1.0, number_in(event, "submissions"));
    view.goodput.submissions = static_cast<int64_t>(submissions);
    view.own = goodput_in(own);
  }
  if (const json node = event.value("node", json()); node.is_string()) view.node = node;
  const json step = event.value("best_step", json());
  if (step.is_number_integer()) view.best_step = step.get<int64_t>();
  return view;
}

std::string goodput_text(const GoodputView& view, bool is_running) {
  std::vector<std::string> heads{"PHASE", "TIME", "SHARE"};
  if (view.own) heads.insert(heads.end(), {"THIS SUBMISSION", "SHARE"});
  TextTable table(heads);
  const Duration total = view.goodput.total();
  const Duration own_total = view.own ? view.own->total() : Duration{};
  const auto add = [&](const char* name, Duration spent, Duration own) {
    std::vector<std::string> row{name, long_duration_text(spent), percent(spent, total)};
    if (view.own) row.insert(row.end(), {long_duration_text(own), percent(own, own_total)});
    table.add(row);
  };
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    const Duration spent = view.goodput.spent[i];
    if (spent == Duration{}) continue;
    add(name_of(static_cast<GoodputPhase>(i)), spent, view.own ? view.own->spent[i] : Duration{});
  }
  add("total", total, own_total);
  const std::string step =
      view.best_step < 0 ? "" : "; last step " + std::to_string(view.best_step);
  return table.text() + goodput_line(view.goodput) + "\nas " + view.node + " sees it; failures " +
         std::to_string(view.goodput.failures) + ", restarts " +
         std::to_string(view.goodput.restarts) + step + (is_running ? "; the job runs" : "") + "\n";
}

}  // namespace cpprun::ctl
