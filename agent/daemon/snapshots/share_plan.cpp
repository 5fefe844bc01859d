#include "agent/daemon/snapshots/share_plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace cpprun {
namespace {

// Newest last: of a later round, then of a later step. Ranks of another world make another save.
using Save = std::tuple<int64_t, int64_t, int>;  // round, step, world size

Save save_of(const ShareName& name) {
  return {name.label.round, name.label.step, name.label.world_size};
}

// The shares of each save by arena; of two in one arena the later one.
using Saves = std::map<Save, std::map<int, ShareName>>;

Saves saves_of(const std::vector<ShareName>& shares) {
  Saves saves;
  for (const ShareName& share : shares) {
    const auto [at, is_new] = saves[save_of(share)].emplace(share.index, share);
    if (!is_new && at->second.number < share.number) at->second = share;
  }
  return saves;
}

bool is_same(const ShareName& a, const ShareName& b) {
  return a.label == b.label && a.crc32 == b.crc32 && a.bytes == b.bytes;
}

bool is_own(const ShareName& share, const OwnRanks& ranks) {
  return share.label.world_size == ranks.world_size && share.label.rank >= ranks.first &&
         share.label.rank < ranks.first + ranks.count;
}

}  // namespace

std::vector<ShareName> to_copy(const std::vector<ShareName>& theirs,
                               const std::vector<ShareName>& held) {
  std::set<int> arenas;
  for (const ShareName& share : theirs) arenas.insert(share.index);
  const Saves saves = saves_of(theirs);
  for (auto save = saves.rbegin(); save != saves.rend(); ++save) {
    if (save->second.size() != arenas.size()) continue;
    std::vector<ShareName> all;
    for (const auto& [index, share] : save->second) all.push_back(share);
    const bool is_held = std::all_of(all.begin(), all.end(), [&](const ShareName& share) {
      return std::any_of(held.begin(), held.end(),
                         [&](const ShareName& copy) { return is_same(copy, share); });
    });
    return is_held ? std::vector<ShareName>() : all;
  }
  return {};
}

std::vector<ShareName> to_take_back(const std::vector<ShareName>& copies, const OwnRanks& ranks) {
  std::vector<ShareName> of_ranks;
  for (ShareName share : copies) {
    share.index = share.label.rank - ranks.first;
    if (is_own(share, ranks)) of_ranks.push_back(share);
  }
  const Saves saves = saves_of(of_ranks);
  for (auto save = saves.rbegin(); save != saves.rend(); ++save) {
    if (save->second.size() != static_cast<size_t>(ranks.count)) continue;
    std::vector<ShareName> all;
    for (const auto& [index, share] : save->second) all.push_back(share);
    return all;
  }
  return {};
}

bool has_own(const std::vector<ShareName>& own, const OwnRanks& ranks) {
  return !to_take_back(own, ranks).empty();
}

uint64_t left_out(const std::vector<ShareName>& before, const std::vector<ShareName>& now) {
  if (before.empty() || now.empty()) return 0;
  const uint64_t from = before.front().number, to = now.front().number;
  return to > from ? to - from - 1 : 0;
}

}  // namespace cpprun
