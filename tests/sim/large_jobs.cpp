// large_jobs: the share of its time that a large job trains, by size and by what it uses of
// cpprun; prints the tables and the plot of docs/goodput.md.
//
//   large_jobs                          # prints them
//   large_jobs --check docs/goodput.md  # exit code 1 if the page has something else
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/sim/large_job.hpp"

namespace {

using cpprun::Goodput;
using cpprun::GoodputPhase;
using cpprun::seconds;
using cpprun::to_seconds;
using cpprun::sim::LargeJobMeans;
using cpprun::sim::LargeJobOptions;
using cpprun::sim::LargeJobResult;

constexpr int kSeeds = 3;  // 1, 2, 3; figures are means
constexpr size_t kBar = 50;

struct Size {
  int64_t workers;
  double mttf_hours;
  const char* name;
  double goal;
};
constexpr std::array<Size, 3> kSizes{
    {{1024, 7.9, "1,024", 0}, {16384, 1.8, "16,384", 0.99}, {131072, 14.0 / 60, "131,072", 0.97}}};

struct Row {
  const char* name;
  LargeJobMeans means;
};
constexpr LargeJobMeans kEverything{true, true, true, true, true};
constexpr LargeJobMeans kAlways{true, true, true, true, true, true};
constexpr std::array<Row, 11> kRows{{
    {"restarts alone", {}},
    {"+ spares, exclusion, hang detection", {.spares = true}},
    {"+ snapshots in memory", {.spares = true, .memory = true}},
    {"+ preloading", {.spares = true, .memory = true, .preload = true}},
    {"+ in-process restart", {.spares = true, .memory = true, .preload = true, .in_process = true}},
    {"+ small communicators: everything", kEverything},
    {"…, if survivors stayed always", kAlways},
    {"everything but spares", {false, true, true, true, true}},
    {"everything but snapshots in memory", {true, false, true, true, true}},
    {"everything but preloading", {true, true, false, true, true}},
    {"everything but in-process restart", {true, true, true, false, false}},
}};

constexpr size_t kEverythingRow = 5;

std::string format(const char* pattern, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

std::string percent(double share) { return format("%.1f %%", std::floor(share * 1000) / 10); }

struct Mean {
  double goodput = 0;
  double accounted = 0;
  double failures_per_day = 0;
  double excluded_per_day = 0;
  Goodput spent;
};

Mean simulate(const Size& size, const LargeJobMeans& means, double rate) {
  Mean mean;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    LargeJobOptions options;
    options.seed = static_cast<uint64_t>(seed);
    options.workers = size.workers;
    options.mttf = seconds(size.mttf_hours * 3600 / rate);
    options.means = means;
    const LargeJobResult result = run_large_job(options);
    const double days = to_seconds(result.total) / 86400;
    mean.goodput += result.goodput() / kSeeds;
    mean.accounted += result.accounted_goodput() / kSeeds;
    mean.failures_per_day += static_cast<double>(result.failures) / days / kSeeds;
    mean.excluded_per_day += static_cast<double>(result.excluded) / days / kSeeds;
    for (size_t i = 0; i < mean.spent.spent.size(); ++i) {
      mean.spent.spent[i] += result.accounted.spent[i];
    }
  }
  return mean;
}

const Mean& measure(const Size& size, const LargeJobMeans& means, double rate) {
  static std::map<std::string, Mean> known;
  std::string key = std::to_string(size.workers) + format(" %g", rate);
  for (const bool flag : {means.spares, means.memory, means.preload, means.in_process,
                          means.small_groups, means.always_stay}) {
    key += flag ? "1" : "0";
  }
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = simulate(size, means, rate);
}

std::string row_of(std::string_view head, const std::vector<std::string>& cells) {
  std::string line = "| " + std::string(head) + " |";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

std::string head_of(std::string_view what) {
  std::vector<std::string> names;
  for (const Size& size : kSizes) names.push_back(std::string(size.name) + " workers");
  return row_of(what, names) + "| --- | ---: | ---: | ---: |\n";
}

std::string means_table() {
  std::string text = head_of("goodput");
  for (const Row& row : kRows) {
    std::vector<std::string> cells;
    for (const Size& size : kSizes) {
      const double share = measure(size, row.means, 1).goodput;
      std::string cell = percent(share);
      if (&row == kRows.data() + kEverythingRow && size.goal > 0) {
        cell += " (goal " + format("%.0f", size.goal * 100) +
                (share >= size.goal ? ": reached)" : ": missed)");
      }
      cells.push_back(cell);
    }
    text += row_of(row.name, cells);
  }
  return text;
}

std::string rates_table() {
  std::string text = head_of("everything, at a failure rate of");
  for (const double rate : {1.0, 3.0, 10.0}) {
    std::vector<std::string> cells;
    for (const Size& size : kSizes) {
      const Mean mean = measure(size, kEverything, rate);
      cells.push_back(percent(mean.goodput) + " (" + format("%.0f", mean.failures_per_day) +
                      " failures a day)");
    }
    text += row_of(format("%.0f ×", rate), cells);
  }
  return text;
}

std::string losses_table() {
  std::string text = head_of("everything: share of the time, by the product's account");
  std::array<Mean, kSizes.size()> means;
  std::ranges::transform(kSizes, means.begin(),
                         [](const Size& size) { return measure(size, kEverything, 1); });
  for (size_t phase = 0; phase < cpprun::kGoodputPhases; ++phase) {
    std::vector<std::string> cells;
    bool is_empty = true;
    for (const Mean& mean : means) {
      const double share =
          to_seconds(mean.spent.spent[phase]) / to_seconds(mean.spent.total()) * 100;
      is_empty = is_empty && share < 0.005;
      cells.push_back(format("%.2f %%", share));
    }
    if (!is_empty) text += row_of(name_of(static_cast<GoodputPhase>(phase)), cells);
  }
  std::vector<std::string> kept, excluded;
  for (const Mean& mean : means) {
    kept.push_back(format("%.2f %%", mean.goodput * 100));
    excluded.push_back(format("%.1f", mean.excluded_per_day));
  }
  text += row_of("steps that were kept, times the time of a step", kept);
  return text + row_of("hosts excluded a day", excluded);
}

std::string plot() {
  std::string text = "```text\n";
  for (const Size& size : kSizes) {
    text += std::string(size.name) + " workers\n";
    for (const Row& row : kRows) {
      const double share = measure(size, row.means, 1).goodput;
      const size_t filled = static_cast<size_t>(std::lround(share * kBar));
      std::string bar;
      for (size_t i = 0; i < kBar; ++i) bar += i < filled ? "█" : "·";
      std::string name = row.name;
      const bool has_dots = name.starts_with("…");  // one column of three bytes
      name.resize(has_dots ? 38 : 36, ' ');
      text += "  " + name + bar + " " + percent(share) + "\n";
    }
  }
  return text + "```\n";
}

}  // namespace

int main(int count, char** words) {
  const std::string text =
      means_table() + "\n" + plot() + "\n" + rates_table() + "\n" + losses_table();
  if (count != 3 || std::string_view(words[1]) != "--check") {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  std::ifstream file(words[2]);
  std::ostringstream page;
  page << file.rdbuf();
  if (page.str().find(text) != std::string::npos) return 0;
  std::fprintf(stderr, "%s has not what large_jobs prints; it prints:\n%s", words[2], text.c_str());
  return 1;
}
