#include "common/goodput/goodput.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace cpprun {
namespace {

constexpr std::array<const char*, kGoodputPhases> kNames{
    "waiting", "starting", "importing", "initialising", "training",
    "redone",  "saving",   "hanging",   "stopping",     "unknown"};

// As the end of "4 min ...".
constexpr std::array<const char*, kGoodputPhases> kLosses{
    "waiting for nodes", "starting", "imports", "initialising", "",
    "redone steps",      "saving",   "hanging", "stopping",     "without a reported step"};

constexpr size_t kShownLosses = 4;
constexpr double kLeastShare = 0.0005;  // a loss below this does not show in the percentage
constexpr Duration kLeast = std::chrono::milliseconds(100);  // and below this it shows as "0.0 s"

std::string percent(double share) {
  std::array<char, 32> text{};
  // Rounded down: 100 % only if nothing was lost.
  std::snprintf(text.data(), text.size(), "%.1f %%", std::floor(share * 1000) / 10);
  return text.data();
}

std::string pair_text(int64_t whole, const char* unit, int64_t rest, const char* smaller) {
  std::string text = std::to_string(whole) + " " + unit;
  return rest == 0 ? text : text + " " + std::to_string(rest) + " " + smaller;
}

std::string losses_text(const Goodput& goodput, GoodputPhase kept) {
  std::vector<std::pair<Duration, size_t>> losses;
  const double total = to_seconds(goodput.total());
  Duration rest{};
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    const bool is_kept = i == static_cast<size_t>(kept);
    if (is_kept || static_cast<GoodputPhase>(i) == GoodputPhase::Training) continue;
    const bool shows =
        goodput.spent[i] >= kLeast && to_seconds(goodput.spent[i]) >= total * kLeastShare;
    if (shows) losses.emplace_back(goodput.spent[i], i);
    if (!shows) rest += goodput.spent[i];
  }
  std::ranges::stable_sort(losses, std::greater<>(), &std::pair<Duration, size_t>::first);
  std::string text;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (i >= kShownLosses) {
      rest += losses[i].first;
      continue;
    }
    text += (text.empty() ? "" : ", ") + long_duration_text(losses[i].first) + " " +
            kLosses[losses[i].second];
  }
  const bool shows_rest = losses.size() > kShownLosses && rest >= kLeast;
  return shows_rest ? text + ", " + long_duration_text(rest) + " for the rest" : text;
}

}  // namespace

const char* name_of(GoodputPhase phase) { return kNames[static_cast<size_t>(phase)]; }

std::optional<double> Goodput::share() const {
  const bool has_steps =
      (*this)[GoodputPhase::Training] + (*this)[GoodputPhase::Redone] > Duration{};
  if (!has_steps) return std::nullopt;
  return to_seconds((*this)[GoodputPhase::Training]) / to_seconds(total());
}

Goodput& Goodput::operator+=(const Goodput& other) {
  for (size_t i = 0; i < kGoodputPhases; ++i) spent[i] += other.spent[i];
  failures += other.failures;
  restarts += other.restarts;
  submissions += other.submissions;
  return *this;
}

Goodput& Goodput::operator-=(const Goodput& part) {
  for (size_t i = 0; i < kGoodputPhases; ++i) spent[i] -= part.spent[i];
  failures -= part.failures;
  restarts -= part.restarts;
  submissions -= part.submissions;
  return *this;
}

std::string long_duration_text(Duration duration) {
  using namespace std::chrono;
  constexpr int64_t kPerMinute = 60, kPerHour = 3600, kPerDay = 86400;
  const int64_t whole = duration_cast<std::chrono::seconds>(duration).count();
  if (whole < kPerMinute) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f s", std::floor(to_seconds(duration) * 10) / 10);
    return text.data();
  }
  if (whole < kPerHour) return pair_text(whole / kPerMinute, "min", whole % kPerMinute, "s");
  const int64_t minutes = whole / kPerMinute;
  if (whole < kPerDay) return pair_text(minutes / 60, "h", minutes % 60, "min");
  return pair_text(whole / kPerDay, "d", whole % kPerDay / kPerHour, "h");
}

std::string goodput_line(const Goodput& goodput) {
  const std::string total =
      long_duration_text(goodput.total()) +
      (goodput.submissions > 1 ? " in " + std::to_string(goodput.submissions) + " submissions"
                               : "");
  const std::optional<double> share = goodput.share();
  const double unknown =
      to_seconds(goodput[GoodputPhase::Unknown]) / std::max(1e-9, to_seconds(goodput.total()));
  const GoodputPhase kept = share ? GoodputPhase::Training : GoodputPhase::Unknown;
  const std::string what = share ? "trained " + percent(*share) + " of " + total
                                 : "the workers ran " + percent(unknown) + " of " + total +
                                       " and reported no steps, so the share of training is " +
                                       "unknown";
  const std::string lost = losses_text(goodput, kept);
  return lost.empty() ? what : what + "; lost: " + lost;
}

std::string own_part_text(const Goodput& own) {
  const std::optional<double> share = own.share();
  return "this submission " + (share ? "trained " + percent(*share) + " of " : "took ") +
         long_duration_text(own.total());
}

}  // namespace cpprun
