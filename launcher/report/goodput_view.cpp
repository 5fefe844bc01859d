#include "launcher/report/goodput_view.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

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
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    const double spent = number_in(event["spent_ms"], name_of(static_cast<GoodputPhase>(i)));
    view.goodput.spent[i] = seconds(spent / 1e3);
  }
  view.goodput.failures = static_cast<int64_t>(number_in(event, "failures"));
  view.goodput.restarts = static_cast<int64_t>(number_in(event, "restarts"));
  if (const json node = event.value("node", json()); node.is_string()) view.node = node;
  const json step = event.value("best_step", json());
  if (step.is_number_integer()) view.best_step = step.get<int64_t>();
  return view;
}

std::string goodput_text(const GoodputView& view, bool is_running) {
  TextTable table({"PHASE", "TIME", "SHARE"});
  const Duration total = view.goodput.total();
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    const Duration spent = view.goodput.spent[i];
    if (spent == Duration{}) continue;
    table.add(
        {name_of(static_cast<GoodputPhase>(i)), long_duration_text(spent), percent(spent, total)});
  }
  table.add({"total", long_duration_text(total), percent(total, total)});
  const std::string step =
      view.best_step < 0 ? "" : "; last step " + std::to_string(view.best_step);
  return table.text() + goodput_line(view.goodput) + "\nas " + view.node + " sees it; failures " +
         std::to_string(view.goodput.failures) + ", restarts " +
         std::to_string(view.goodput.restarts) + step + (is_running ? "; the job runs" : "") + "\n";
}

}  // namespace cpprun::ctl
